package provider

import (
	"strings"

	"modelgate/internal/provider/reqscan"
)

const formKind = "multipart/form-data; boundary=XyZ"

// formParts are the text parts that the form doors read.
func formParts() *reqscan.Names {
	return reqscan.NewNames("model", "stream", "n", "seconds", "size", "quality", "response_format", "prompt")
}

// formPart is one text part, its headers given, each without its line end.
func formPart(content string, headers ...string) string {
	return "--XyZ\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n" + content + "\r\n"
}

// partName is the disposition header of a text part.
func partName(name string) string { return `Content-Disposition: form-data; name="` + name + `"` }

const formEnd = "--XyZ--\r\n"
