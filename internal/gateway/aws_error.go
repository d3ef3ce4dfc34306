package gateway

import "modelgate"

// awsError is the name under which AWS's SDKs know an error of the kind.
func awsError(k modelgate.Kind) string {
	switch k.Status() {
	case 400, 405, 413:
		return "ValidationException"
	case 401:
		return "UnrecognizedClientException"
	case 402:
		return "ServiceQuotaExceededException"
	case 403:
		return "AccessDeniedException"
	case 404, 410:
		return "ResourceNotFoundException"
	case 429:
		return "ThrottlingException"
	case 503:
		return "ServiceUnavailableException"
	}
	return "InternalServerException"
}
