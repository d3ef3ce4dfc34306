package simulator

import (
	"net/http"
	"strconv"
)

// format is whose error shape and headers a path has.
type format string

const (
	formatOpenAI    format = "openai"
	formatAnthropic format = "anthropic"
	formatGemini    format = "gemini"
	formatCohere    format = "cohere"
	formatDashScope format = "dashscope"
)

// fail is an error in the shape of the call's provider.
func (c *call) fail(status int, message string) answer {
	a := jsonAnswer(c.fault(status, capitalized(message)))
	a.status = status
	return a
}

// fault is the error object. OpenAI's shape is the default: it is what every
// unknown path answers in.
func (c *call) fault(status int, message string) any {
	switch c.format {
	case formatAnthropic:
		return object{"type": "error", "error": object{"type": anthropicError(status), "message": message},
			"request_id": "req_sim" + strconv.FormatInt(c.served.Seq, 10)}
	case formatGemini:
		return object{"error": object{"code": status, "message": message, "status": geminiStatus(status)}}
	case formatCohere:
		return object{"message": message}
	case formatDashScope:
		return object{"code": dashScopeCode(status), "message": message, "request_id": "sim-" + strconv.FormatInt(c.served.Seq, 10)}
	}
	kind, code := openAIError(status)
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}
}

func openAIError(status int) (kind string, code any) {
	switch {
	case status == http.StatusUnauthorized:
		return "invalid_request_error", "invalid_api_key"
	case status == http.StatusTooManyRequests:
		return "requests", "rate_limit_exceeded"
	case status >= 500:
		return "server_error", nil
	}
	return "invalid_request_error", nil
}

func anthropicError(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func geminiStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

func dashScopeCode(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "InvalidApiKey"
	case http.StatusForbidden:
		return "AccessDenied"
	case http.StatusTooManyRequests:
		return "Throttling.RateQuota"
	}
	if status >= 500 {
		return "InternalError"
	}
	return "InvalidParameter"
}
