package costbound

import (
	"slices"
	"strings"

	"modelgate/internal/provider/reqscan"
)

// clientTypes are the types of tools that the client runs; a name that ends in _
// is the beginning of several.
var clientTypes = []string{"function", "custom", "local_shell", "apply_patch", "bash_", "text_editor_", "computer_", "memory_"}

// declarations are the members by which a tool declares functions of the client.
var declarations = []string{"functionDeclarations", "function_declarations"}

// providerTools are the members by which a tool that declares functions asks for
// something of the provider's as well.
var providerTools = []string{
	"googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "codeExecution", "code_execution", "urlContext", "url_context",
	"googleMaps", "google_maps", "fileSearch", "file_search", "enterpriseWebSearch", "enterprise_web_search", "retrieval", "mcpServers", "mcp_servers",
}

// toolMembers are the members of a tool that clientTool reads.
func toolMembers() []string {
	return slices.Concat(providerTools, declarations, []string{"type", "name", "tools", systemTool})
}

// systemTool is the member of a tool of Amazon Bedrock's that Bedrock runs.
const systemTool = "systemTool"

// runsSystemTool reports whether any of the tools that an object lists is one that
// Amazon Bedrock runs.
func (r *Reader) runsSystemTool(config reqscan.Value) bool {
	members, err := config.Pick(r.tools)
	if err != nil {
		return true
	}
	list, _ := members.Get("tools")
	for tool := range list.Elements() {
		if m, err := tool.Pick(r.tools); err != nil || m.Has(systemTool) {
			return true
		}
	}
	return false
}

// runsTools reports whether any of the tools is one that the provider runs.
func (r *Reader) runsTools(tools reqscan.Value) bool {
	switch tools.Kind() {
	case reqscan.JSONNull:
		return false
	case reqscan.JSONArray:
		for tool := range tools.Elements() {
			if !r.clientTool(tool) {
				return true
			}
		}
		return false
	}
	return !r.clientTool(tools) // some take a single one for a list
}

// clientTool reports whether a tool is one that the client runs: it has a name
// and no type of its own, or one of clientTypes.
func (r *Reader) clientTool(tool reqscan.Value) bool {
	members, err := tool.Pick(r.tools)
	if err != nil || tool.Kind() != reqscan.JSONObject {
		return false
	}
	kind, _ := members.Get("type")
	if text, ok := kind.Text(); ok {
		return slices.ContainsFunc(clientTypes, func(t string) bool {
			return text == t || strings.HasSuffix(t, "_") && strings.HasPrefix(text, t)
		})
	}
	return members.Has("name") || slices.ContainsFunc(declarations, members.Has) && !slices.ContainsFunc(providerTools, members.Has)
}
