package cloud

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// signedBySmithy are requests that @smithy/signature-v4 5.7.5, the signer of AWS's SDK
// for JavaScript, has signed. A target is as it stands on the wire.
var signedBySmithy = []struct{ target, body, hash, key, token, signature string }{
	{"/model/anthropic.claude-v1%3A0/converse", `{"a":"é"}`, "b3a092a6af48807fa9482b2ee140105575daa26d5b24b3c0e60a7e2dee6683b1",
		"AKIDSMITHY", "", "7238a0814b18d0f8dd384af7eb9d24b53692ac053412c9997f6182a7a3909a42"},
	{"/model/anthropic.claude-v1:0/converse", `{}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		"AKIDSMITHY", "", "df64e8db560d723befc9a7fe33f7baa087e28bcb91395fa798d41d760d5709a7"},
	{"/a%20b/%C3%A9/~x?b=2&a=x%20y&c=%C3%A9%2F%3A", ``, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"AKIDSMITHY", "", "f34ed0ec20560a2ad25aeb863083c475cb3f966209d5fc13a094845ea70ed6b9"},
	{"/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Aapplication-inference-profile%2Fx/invoke", `{"max_tokens":1}`, "3dad411eb0f5c33818edd8c544777853ec18ac0c3302379c36079ea194193599",
		"ASIASMITHY", "session/with+signs==", "71815a98f70e2516f63f685f15fbdcfa9c3b76484ea2beda72cf91fb7aaa7d71"},
	{"/v1/m@2026/x?q=2&q=1", `[]`, "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
		"ASIASMITHY", "session/with+signs==", "b7444b9bf686a5fda3621f94a4dd168ab6b2062286bc185762ba8e3c8dff930e"},
}

// The judge accepts what another signer has signed, and nothing that differs from it.
func TestJudge(t *testing.T) {
	t.Parallel()
	const secret = "wJalrXUtnFEMI/K7MDENG"
	for _, c := range signedBySmithy {
		signed := "content-type;host;x-amz-content-sha256;x-amz-date;x-amzn-bedrock-trace"
		if c.token != "" {
			signed = strings.Replace(signed, "x-amz-date", "x-amz-date;x-amz-security-token", 1)
		}
		judge := Judge{
			Secrets: map[string]string{"AKIDSMITHY": secret, "ASIASMITHY": secret}, Sessions: map[string]string{"ASIASMITHY": "session/with+signs=="},
			Region: "eu-central-1", Service: "bedrock", Now: func() time.Time { return time.Date(2026, 11, 25, 3, 4, 59, 0, time.UTC) },
		}
		verify := func(j Judge, target, body string, change func(http.Header)) error {
			r := httptest.NewRequest(http.MethodPost, target, nil)
			r.Host = "bedrock-runtime.eu-central-1.amazonaws.com"
			r.Header = http.Header{
				"Content-Type": {"application/json"}, "X-Amzn-Bedrock-Trace": {" a  b "}, "X-Amz-Date": {"20261125T030000Z"}, "X-Amz-Content-Sha256": {c.hash},
				"Authorization": {"AWS4-HMAC-SHA256 Credential=" + c.key + "/20261125/eu-central-1/bedrock/aws4_request, SignedHeaders=" + signed + ", Signature=" + c.signature},
			}
			if c.token != "" {
				r.Header.Set("X-Amz-Security-Token", c.token)
			}
			change(r.Header)
			return j.Verify(r, target, []byte(body))
		}
		same := func(http.Header) {}
		if err := verify(judge, c.target, c.body, same); err != nil {
			t.Errorf("%s: %v", c.target, err)
		}
		set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
		late, elsewhere, other, unknown := judge, judge, judge, judge
		late.Now = func() time.Time { return time.Date(2026, 11, 25, 3, 5, 1, 0, time.UTC) }
		elsewhere.Region, other.Service, unknown.Secrets = "us-east-1", "bedrock-mantle", nil
		for what, err := range map[string]error{
			"six minutes":     verify(late, c.target, c.body, same),
			"another region":  verify(elsewhere, c.target, c.body, same),
			"another service": verify(other, c.target, c.body, same),
			"unknown key":     verify(unknown, c.target, c.body, same),
			"another path":    verify(judge, "/x"+c.target, c.body, same),
			"another body":    verify(judge, c.target, c.body+" ", same),
			"another date":    verify(judge, c.target, c.body, set("X-Amz-Date", "20261125T030001Z")),
			"another header":  verify(judge, c.target, c.body, set("X-Amzn-Bedrock-Trace", "c")),
			"unsigned header": verify(judge, c.target, c.body, set("X-Amz-Target", "x")),
			"another token":   verify(judge, c.target, c.body, set("X-Amz-Security-Token", "x")),
			"no signature":    verify(judge, c.target, c.body, set("Authorization", "Bearer x")),
		} {
			if err == nil {
				t.Errorf("%s: accepted with %s", c.target, what)
			}
		}
	}
}
