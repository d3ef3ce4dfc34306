package httpx

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/go-json-experiment/json/jsontext"

	"modelgate"
)

// checker holds a body against the struct that it is to be read into, before
// any of it is read. See DecodeJSON.
type checker struct{ d *jsontext.Decoder }

// value reads a value that is for a Go type, nil for one that is ignored.
func (c checker) value(t reflect.Type, nullable, outermost bool) error {
	token, err := c.d.ReadToken()
	if err != nil {
		return err
	}
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind := reflect.Invalid
	if t != nil {
		kind = t.Kind()
	}
	switch token.Kind() {
	case 'n':
		if t != nil && !nullable {
			return modelgate.Errorf(modelgate.BadRequest, "%s must not be null", member(c.d.StackPointer()))
		}
	case '"':
		return c.text(token)
	case '[':
		var element reflect.Type
		if kind == reflect.Slice {
			element = t.Elem()
		}
		for c.d.PeekKind() != ']' {
			if err := c.value(element, false, false); err != nil {
				return err
			}
		}
		_, err = c.d.ReadToken() // ends the array, or finds the text at its end
	case '{':
		if kind != reflect.Struct {
			t = nil
		}
		for c.d.PeekKind() != '}' {
			if err := c.member(t, outermost); err != nil {
				return err
			}
		}
		_, err = c.d.ReadToken()
	}
	return err
}

// text refuses U+0000, which no stored text may hold.
func (c checker) text(token jsontext.Token) error {
	if strings.Contains(token.String(), "\x00") {
		return modelgate.Errorf(modelgate.BadRequest, "%s: U+0000 is not allowed", member(c.d.StackPointer()))
	}
	return nil
}

// member reads a member of an object that is for a struct, nil for one that is
// ignored.
func (c checker) member(t reflect.Type, outermost bool) error {
	token, err := c.d.ReadToken()
	if err != nil {
		return err
	}
	if err := c.text(token); err != nil {
		return err
	}
	if t == nil {
		return c.value(nil, true, false)
	}
	name := token.String()
	field, known := fieldOf(t, name)
	if !known && !(outermost && modelgate.NamesOrganization(name)) && !ignored(t, name) {
		shown := name // the pointer to an empty one looks like that to the whole
		if name != "" {
			shown = member(c.d.StackPointer())
		}
		return unknown("member", "members", shown, name, members(t))
	}
	return c.value(field.Type, field.Tag.Get("null") == "absent", false)
}

// jsonName is the name of a field in JSON, "" for one that has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-")
}

// fieldOf is the field of a struct that a member is read into; the zero field
// has no type.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); name != "" && jsonName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// members are the names of a struct's members, in its order.
func members(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ignored reports whether a struct names a member as one that is not read.
func ignored(t reflect.Type, name string) bool {
	blank, ok := t.FieldByName("_")
	return ok && slices.Contains(strings.Split(blank.Tag.Get("ignore"), ","), name)
}

// unknown refuses a name with the nearest known one, or with all of them.
// shown is the name with its place.
func unknown(noun, plural, shown, name string, known []string) error {
	if near := nearest(name, known); near != "" {
		return modelgate.Errorf(modelgate.BadRequest, "unknown %s \"%s\"; did you mean \"%s\"?", noun, shown, near)
	}
	if len(known) == 0 {
		return modelgate.Errorf(modelgate.BadRequest, "unknown %s \"%s\"; there are none", noun, shown)
	}
	return modelgate.Errorf(modelgate.BadRequest, "unknown %s \"%s\"; %s are %s", noun, shown, plural, strings.Join(known, ", "))
}

// nearest is the known name that differs least from a name, by at most a third
// of the longer one's characters, "" for none.
func nearest(name string, known []string) string {
	best, least := "", 0
	n := utf8.RuneCountInString(name)
	for _, k := range known {
		longer := max(n, len(k))
		if 3*(longer-min(n, len(k))) > longer {
			continue // that many at least differ; the name may be a long one
		}
		distance := levenshtein.ComputeDistance(name, k)
		if 3*distance <= longer && (best == "" || distance < least) {
			best, least = k, distance
		}
	}
	return best
}
