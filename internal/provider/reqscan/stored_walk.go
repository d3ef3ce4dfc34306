package reqscan

import "strings"

// walker goes once through a body that Scan accepted and keeps what it knows
// of each container that is open.
type walker struct {
	Lexer
	items   bool
	schemes []string
	open    []container
}

// container is an array or object that has been entered.
type container struct {
	object bool
	want   bool   // a member's name comes next
	name   string // of the member that is being read
	parent string // the name of the member whose value it is, "" for others
	mark   mark   // that of parent, where it says something about what is in here
	item   bool   // an element of the top-level input

	kind                     string // its member type
	kinds                    int    // how many it has
	identified, role, result bool
	// input is a reference inside the member input, which is the client's own
	// JSON where the object turns out to be the use of a tool. within is the
	// index of the innermost container around this one that could be one; 0
	// for none.
	input  Reference
	within int
}

func (w *walker) top() *container { return &w.open[len(w.open)-1] }

// walk is the first reference in the body.
func (w *walker) walk() Reference {
	for i := w.Space(0); i < len(w.Text); i = w.Space(i) {
		var found Reference
		within := 0
		switch c := w.Text[i]; c {
		case '{', '[':
			found = w.enter(c == '{')
			within = w.top().within
			i++
		case '}', ']':
			within = w.top().within
			found = w.leave()
			i++
		case ',':
			w.top().want = w.top().object
			i++
		default:
			_, end, err := w.value(i, MaxDepth-1)
			if err != nil { // Scan accepted it
				return Reference{}
			}
			v := Value{body: w.Text, Span: Span{i, end}}
			if i = end; w.top().want {
				i = w.named(v)
				continue
			}
			found, within = w.scalar(v), w.inside(len(w.open)-1)
		}
		if found != (Reference{}) && within == 0 {
			return found
		}
		if found != (Reference{}) && w.open[within].input == (Reference{}) {
			w.open[within].input = found
		}
	}
	return Reference{}
}

// inside is the index of the innermost container, i or one around it, whose
// member input is being read and that is not the outermost; 0 for none.
func (w *walker) inside(i int) int {
	if i > 0 && w.open[i].object && w.open[i].name == "input" {
		return i
	}
	return w.open[i].within
}

// named reads a member's name and the colon, and passes over a value that is
// the client's own JSON. It returns where to go on.
func (w *walker) named(v Value) int {
	t := w.top()
	t.want = false
	t.name, _ = v.Text()
	next, err := w.colon(v.End)
	if err == nil && isForeign(t.name) {
		_, next, err = w.value(next, 1)
	}
	if err != nil { // Scan accepted it
		return len(w.Text)
	}
	return next
}

// enter opens a container.
func (w *walker) enter(object bool) (found Reference) {
	c := container{object: object, want: object}
	if len(w.open) > 0 {
		t := w.top()
		c.within, c.parent, c.mark = w.inside(len(w.open)-1), t.parent, t.mark
		if t.object {
			c.parent, c.mark = t.name, markOf([]byte(t.name))
		}
		c.item = object && len(w.open) == 2 && w.open[0].name == "input" && !t.object
		if object && c.mark == refers {
			found = Reference{Name: c.parent}
		}
	}
	w.open = append(w.open, c)
	return found
}

// leave closes a container and says what it turned out to be.
func (w *walker) leave() Reference {
	c := *w.top()
	w.open = w.open[:len(w.open)-1]
	if w.items && c.item && c.identified {
		if c.kinds == 0 && !c.role || c.kind == "image_generation_call" && !c.result {
			return Reference{Name: "input[].id", Item: true}
		}
	}
	toolUse := c.kinds == 1 && (c.kind == "tool_use" || c.kind == "server_tool_use" || c.kind == "mcp_tool_use")
	if toolUse && len(w.open) > 0 {
		return Reference{}
	}
	return c.input
}

// scalar reads a value that is no container.
func (w *walker) scalar(v Value) Reference {
	t := w.top()
	text, whole := v.Text()
	says := v.Kind() == JSONNumber || v.Kind() == JSONString && (text != "" || !whole)
	for _, scheme := range w.schemes {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), scheme) {
			return Reference{Name: scheme}
		}
	}
	if !says {
		return Reference{}
	}
	if !t.object {
		if t.mark == refers {
			return Reference{Name: t.parent}
		}
		return Reference{}
	}
	switch t.name {
	case "type":
		t.kind, t.kinds = text, t.kinds+1
		if text == "item_reference" {
			return Reference{Name: text, Item: true}
		}
	case "role":
		t.role = true
	case "result":
		t.result = true
	}
	switch m := markOf([]byte(t.name)); {
	case m == refers, m == holds, m == isURI && isStoredURI(text):
		return Reference{Name: t.name}
	case m == isIdentity:
		t.identified = true
		if t.mark == holds || t.mark == hasID {
			return Reference{Name: t.parent}
		}
	}
	return Reference{}
}
