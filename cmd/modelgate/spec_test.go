package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestSpec plays the scripts in spec/, one per section of the API,
// against the real binary; see testkit.Spec.
//
// Every exchange is held against the contract, and every operation of the
// contract must be among them.
func TestSpec(t *testing.T) {
	t.Parallel()
	playSpec(t, testkit.GatewayOptions{})
}

// TestSpecOnStandardHTTP plays them where Go's library is the server and the
// client.
func TestSpecOnStandardHTTP(t *testing.T) {
	t.Parallel()
	playSpec(t, testkit.GatewayOptions{Server: "http: standard", Env: []string{"MODELGATE_TRANSPORT=standard"}})
}

func playSpec(t *testing.T, o testkit.GatewayOptions) {
	const processorKey = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"
	p := testkit.NewProcessor(t, processorKey)
	o.More = p.Config(processorKey)
	g := testkit.StartGateway(t, o)
	contract := testkit.NewContract(t, fetch(t, g.URL+"/openapi.json"))
	t.Cleanup(func() {
		for _, op := range contract.Missing() {
			if !isOfPeople(op) {
				t.Errorf("no script in spec/ has %s answered with success", op)
			}
		}
	})
	spec := testkit.Spec{Gateway: g, Processor: p, ProcessorKey: processorKey, Glob: "../../spec/*.txt"}
	spec.Play(t, testkit.Script{Contract: contract})
}

// isOfPeople reports whether an operation, as Contract.Missing names it, succeeds
// only where people sign in, which no script can do: TestMembersAndSessions has it
// answered with success.
func isOfPeople(operation string) bool {
	id, _, _ := strings.Cut(operation, " ")
	return slices.Contains([]string{"endSession", "endSessions", "removeMember", "setRole"}, id)
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", url, resp.StatusCode, err)
	}
	return text
}
