package usage

// EstimateTokens is a guess at the tokens in so many bytes of text, for
// calls whose provider reports none: one for each four bytes begun.
func EstimateTokens(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return (bytes-1)/4 + 1
}
