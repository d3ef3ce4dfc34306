package gateway

import (
	"slices"
	"strings"
)

// sdkProducts are the first words of the User-Agent of SDKs that do not name
// their language after a slash as OpenAI's do.
func sdkProducts() []string {
	return []string{
		"google-genai-sdk/", "cohere-ai/", "github.com/cohere-ai/", "voyageai/", "mistral-client-", "replicate-javascript/",
		"@fal-ai/client/", "speakeasy-sdk/", "langchainjs-", "ai-sdk-", "ai-sdk/", "ai/", "claude-cli/",
	}
}

// sdkLanguages are what follows the class name in generated SDKs, as in
// "AsyncOpenAI/Python 3.3.1".
func sdkLanguages() []string {
	return []string{"JS ", "Python ", "Go ", "Java ", "Ruby ", "PHP ", "Kotlin ", "C# "}
}

// viaSDK reports whether a call comes from a provider's or a well-known SDK,
// judged by its User-Agent.
func viaSDK(userAgent string) bool {
	class, rest, ok := strings.Cut(userAgent, "/")
	beginsWith := func(text string) func(string) bool {
		return func(start string) bool { return strings.HasPrefix(text, start) }
	}
	return ok && (slices.ContainsFunc(sdkLanguages(), beginsWith(rest)) && sdkClass(class) ||
		strings.HasPrefix(class, "OpenAI") && strings.Contains(userAgent, ".NET") ||
		slices.ContainsFunc(sdkProducts(), beginsWith(userAgent)))
}

// sdkClass reports whether a class name is an SDK client's: users subclass
// them, so only letters and digits are asked for.
func sdkClass(name string) bool {
	for i := range len(name) {
		c := name[i] | 0x20
		if (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') && c != '_' {
			return false
		}
	}
	return name != ""
}
