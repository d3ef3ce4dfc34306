//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"modelgate/test/testkit"
	"modelgate/test/testkit/cloud"
)

// BenchmarkSignedCall measures the processor's time of the gateway for a call with
// 1 KB of body to Bedrock, signed and with a key in turns, and reports their ratio.
// One iteration is a thousand calls of each.
func BenchmarkSignedCall(b *testing.B) {
	stand := cloud.NewBedrock(b)
	g := testkit.StartGateway(b, testkit.GatewayOptions{
		Metering: "fsync: interval",
		Providers: fmt.Sprintf("\n  - {name: signed, format: bedrock, base_url: %q, identity: {aws: {region: eu-central-1, service: bedrock, access_key_id: %s, secret_access_key: %s}}}\n",
			stand.URL, cloud.AccessKeyID, cloud.SecretKey) + fmt.Sprintf("  - {name: keyed, format: bedrock, base_url: %q, credential: %s}", stand.URL, cloud.BedrockKey),
	})
	key, _ := g.NewKey(g.NewClient("bench"))
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}],"model":"m"}`
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	calls := func(provider string, n int) {
		var group errgroup.Group
		group.SetLimit(8)
		for range n {
			group.Go(func() error {
				req, err := http.NewRequest(http.MethodPost, g.URL+"/"+provider+"/openai/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					return err
				}
				req.Header.Set("Authorization", "Bearer "+key)
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
					return fmt.Errorf("status %d, %v", resp.StatusCode, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	calls("signed", 200)
	calls("keyed", 200)
	ticks := map[string]int64{}
	for b.Loop() {
		for range 10 {
			for _, provider := range []string{"signed", "keyed"} {
				before := processTicks(b, g.Pid())
				calls(provider, 100)
				ticks[provider] += processTicks(b, g.Pid()) - before
			}
		}
	}
	b.ReportMetric(float64(ticks["signed"])/float64(ticks["keyed"]), "signed/keyed")
	b.ReportMetric(float64(ticks["keyed"])*1e7/float64(1000*b.N), "cpu-ns/call")
}

// processTicks is what a process has used of the processor, in hundredths of a
// second.
func processTicks(b *testing.B, pid int) (sum int64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}
