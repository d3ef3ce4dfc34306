package simulator

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// tool is a function that a request offers.
type tool struct {
	name   string
	schema fields // of its arguments
}

// toolCall is an answer that calls a tool in place of saying something.
type toolCall struct {
	name      string
	arguments object
}

// text is the arguments as JSON.
func (t *toolCall) text() string { return string(encode(t.arguments)) }

// callTool is the call that answers the request; nil if text does. A request
// that ends with a turn of the user is answered with a call of
//
//   - the tool that the directive names,
//   - else the one that the request demands,
//   - else the one that the last text of that turn mentions by its name.
//
// Only tools that the request offers with a schema, and does not forbid to call,
// are called. So a tool's result is always answered with text.
func (c *call) callTool() *toolCall {
	offered := c.fields.tools()
	demanded, forbidden := c.fields.toolChoice()
	if !c.prompt.usersTurn || forbidden || len(offered) == 0 {
		return nil
	}
	names := []string{c.d.tool, demanded}
	names = append(names, strings.FieldsFunc(withoutDirectives(c.prompt.asked), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})...)
	for _, name := range names {
		at := slices.IndexFunc(offered, func(t tool) bool { return t.name == name || name == anyTool })
		if at >= 0 {
			arguments := sampler{offered[at].schema}.object(offered[at].schema, 0)
			maps.Copy(arguments, c.d.arguments)
			return &toolCall{offered[at].name, arguments}
		}
	}
	return nil
}

// tools are the functions that a request of any format offers. What a provider
// runs itself has no schema and is not among them.
func (f fields) tools() []tool {
	var list []tool
	for _, v := range append(f.list("tools"), f.object("toolConfig").list("tools")...) {
		entry := asFields(v)
		if spec := entry.object("toolSpec"); spec != nil {
			list = append(list, tool{spec.text("name"), spec.object("inputSchema").object("json")})
		}
		for _, d := range append(entry.list("functionDeclarations"), v, entry["function"]) {
			function := asFields(d)
			for _, name := range []string{"parameters", "input_schema", "parametersJsonSchema"} {
				if schema := function.object(name); schema != nil {
					list = append(list, tool{function.text("name"), schema})
				}
			}
		}
	}
	return list
}

// anyTool stands for whichever tool is offered first.
const anyTool = "*"

// toolChoice is the tool that a request demands to be called, anyTool for any of
// them, "" for none; and whether it forbids calls.
func (f fields) toolChoice() (demanded string, forbidden bool) {
	choice := f.object("tool_choice")
	config := f.object("toolConfig").object("functionCallingConfig")
	bedrock := f.object("toolConfig").object("toolChoice")
	if bedrock["any"] != nil {
		demanded = anyTool
	}
	for _, mode := range []string{f.text("tool_choice"), choice.text("type"), config.text("mode")} {
		switch mode {
		case "none", "NONE":
			return "", true
		case "required", "REQUIRED", "any", "ANY":
			demanded = anyTool
		}
	}
	allowed, _ := first(config["allowedFunctionNames"]).(string)
	return cmp.Or(choice.text("name"), bedrock.object("tool").text("name"), choice.object("function").text("name"), allowed, demanded), false
}
