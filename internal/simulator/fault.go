package simulator

import (
	"cmp"
	"net/http"
	"strings"
)

// format is whose error shape and headers a path has.
type format string

const (
	formatOpenAI    format = "openai"
	formatAnthropic format = "anthropic"
	formatGemini    format = "gemini"
	formatCohere    format = "cohere"
	formatDashScope format = "dashscope"
	formatBedrock   format = "bedrock"
)

// What an answer says whose failure a directive asked for.
const (
	toldToFail    = "The simulator was told to fail here."
	jobToldToFail = "The job was told to end like this."
)

// errorNames are the formats' names for a status. Those of 4 and 5 stand for
// all other statuses that begin with the digit.
var errorNames = map[format]map[int]string{
	formatOpenAI: {4: "invalid_request_error", 5: "server_error", http.StatusTooManyRequests: "requests"},
	formatAnthropic: {
		4: "invalid_request_error", 5: "api_error",
		http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
		http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests: "rate_limit_error", http.StatusGatewayTimeout: "timeout_error", 529: "overloaded_error",
	},
	formatGemini: {
		4: "INVALID_ARGUMENT", 5: "INTERNAL",
		http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED", http.StatusNotFound: "NOT_FOUND",
		http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE",
		http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
	},
	formatBedrock: {
		4: "ValidationException", 5: "InternalServerException",
		http.StatusUnauthorized: "UnrecognizedClientException", http.StatusForbidden: "AccessDeniedException", http.StatusNotFound: "ResourceNotFoundException",
		http.StatusTooManyRequests: "ThrottlingException", http.StatusServiceUnavailable: "ServiceUnavailableException",
	},
	formatDashScope: {
		4: "InvalidParameter", 5: "InternalError",
		http.StatusUnauthorized: "InvalidApiKey", http.StatusForbidden: "AccessDenied", http.StatusTooManyRequests: "Throttling.RateQuota",
	},
}

// openAICodes are the codes that OpenAI's errors have besides their type.
var openAICodes = map[int]any{http.StatusUnauthorized: "invalid_api_key", http.StatusTooManyRequests: "rate_limit_exceeded"}

// fail is an error in the shape of the call's provider. The message begins with
// a capital there.
func (c *call) fail(status int, message string) answer {
	a := jsonAnswer(c.fault(status, strings.ToUpper(message[:1])+message[1:]))
	a.status = status
	if c.format == formatBedrock {
		a.header = http.Header{"X-Amzn-Errortype": {c.errorName(status)}}
	}
	return a
}

// invalid is the refusal of a request that is wrong.
func (c *call) invalid(message string) answer { return c.fail(http.StatusBadRequest, message) }

// fault is the error object. OpenAI's shape is the default: it is what every
// unknown path answers in.
func (c *call) fault(status int, message string) object {
	name := c.errorName(status)
	switch c.format {
	case formatAnthropic:
		return object{"type": "error", "error": object{"type": name, "message": message}, "request_id": c.requestID()}
	case formatGemini:
		return object{"error": object{"code": status, "message": message, "status": name}}
	case formatCohere, formatBedrock:
		return object{"message": message}
	case formatDashScope:
		return object{"code": name, "message": message, "request_id": c.requestID()}
	}
	return object{"error": object{"message": message, "type": name, "param": nil, "code": openAICodes[status]}}
}

// errorName is the format's name for a status.
func (c *call) errorName(status int) string {
	names := errorNames[cmp.Or(c.format, formatOpenAI)]
	return cmp.Or(names[status], names[status/100])
}
