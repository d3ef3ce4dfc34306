// Package cloudhost reads what the public host names of AWS, Google Cloud and
// Azure say of a model service: its region, its signing name, its token scope.
package cloudhost

import (
	"net/url"
	"strings"
)

// Of is the host of an address, in lower case and without its port; "" where
// there is none.
func Of(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// AWS reads a host such as bedrock-runtime.eu-central-1.amazonaws.com: the name
// that requests to it are signed for, and its region. It reports false for any
// other host.
func AWS(host string) (service, region string, ok bool) {
	label, rest, _ := strings.Cut(host, ".")
	for _, suffix := range [...]string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		region, ok = strings.CutSuffix(rest, suffix)
		if ok = ok && label != "" && region != "" && !strings.Contains(region, "."); ok {
			break
		}
	}
	switch {
	case !ok:
		return "", "", false
	case strings.HasPrefix(label, "bedrock-runtime"):
		label = "bedrock"
	}
	return label, region, true
}

// Vertex reads the location out of a host of Google's: europe-west4 out of
// europe-west4-aiplatform.googleapis.com, eu out of
// aiplatform.eu.rep.googleapis.com, global out of aiplatform.googleapis.com. It
// reports false for any other host.
func Vertex(host string) (location string, ok bool) {
	if host == "aiplatform.googleapis.com" {
		return "global", true
	}
	if location, ok = strings.CutSuffix(host, "-aiplatform.googleapis.com"); !ok {
		location, ok = strings.CutPrefix(host, "aiplatform.")
		if ok {
			location, ok = strings.CutSuffix(location, ".rep.googleapis.com")
		}
	}
	return location, ok && location != "" && !strings.Contains(location, ".")
}

// AzureScope is what Microsoft Entra is asked for on behalf of a host, "" where
// the host does not say.
func AzureScope(host string) string {
	switch {
	case strings.HasSuffix(host, ".openai.azure.com"), strings.HasSuffix(host, ".cognitiveservices.azure.com"):
		return "https://cognitiveservices.azure.com/.default"
	case strings.HasSuffix(host, ".services.ai.azure.com"):
		return "https://ai.azure.com/.default"
	}
	return ""
}
