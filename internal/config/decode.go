package config

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A nodeDecoder reads values that have more than one shape.
type nodeDecoder interface {
	decodeNode(d *document, path string, n ast.Node)
}

// initialise sets the defaults of a struct and of those within it.
func initialise(p any) {
	v := reflect.ValueOf(p).Elem()
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.CanSet() && f.Kind() == reflect.Struct {
			initialise(f.Addr().Interface())
		}
	}
	if s, ok := p.(interface{ setDefaults() }); ok {
		s.setDefaults()
	}
}

// decode reads the whole document into what p points to.
func (d *document) decode(p any) {
	if d.body != nil {
		d.value("", d.body, p)
	}
}

// value reads a node into what p points to. A null leaves it as it is.
func (d *document) value(path string, n ast.Node, p any) {
	switch n := n.(type) {
	case nil:
		return
	case *ast.NullNode:
		d.nulls[path] = true
		return
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.fault(path, "anchors, aliases and tags are not supported; write the value out")
		return
	case *ast.MappingKeyNode, *ast.MergeKeyNode:
		d.fault(path, "is no value")
		return
	default:
		if _, known := d.places[path]; !known && path != "" {
			d.places[path] = placeOf(n)
		}
	}
	if u, ok := p.(nodeDecoder); ok {
		u.decodeNode(d, path, n)
		return
	}
	v := reflect.ValueOf(p).Elem()
	_, scalar := scalarOf(v.Type())
	switch {
	case scalar:
		d.scalar(path, n, v)
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		initialise(fresh.Interface())
		d.value(path, n, fresh.Interface())
		v.Set(fresh)
	case v.Kind() == reflect.Struct:
		d.mapping(path, n, v)
	case v.Kind() == reflect.Map:
		d.table(path, n, v)
	case v.Kind() == reflect.Slice:
		d.sequence(path, n, v)
	}
}

// mapping reads the keys of a struct.
func (d *document) mapping(path string, n ast.Node, v reflect.Value) {
	fields := fieldsOf(v)
	d.entries(path, n, func(key string, entry *ast.MappingValueNode) {
		field, known := fields[key]
		if !known {
			d.places[member(path, key)] = placeOf(entry.Key)
			d.fault(member(path, key), "%s", unknownKey(key, v.Type()))
			return
		}
		d.entry(member(path, key), entry, field.Addr().Interface())
	})
}

// table reads a map whose keys are free.
func (d *document) table(path string, n ast.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	d.entries(path, n, func(key string, entry *ast.MappingValueNode) {
		value := reflect.New(v.Type().Elem())
		d.entry(member(path, key), entry, value.Interface())
		if !d.has(member(path, key)) {
			d.places[member(path, key)] = placeOf(entry.Key)
			d.fault(member(path, key), "has no value")
		}
		v.SetMapIndex(reflect.ValueOf(key), value.Elem())
	})
}

// entry reads one value. A fault of what is not a scalar is shown at its key,
// since its value begins on some later line.
func (d *document) entry(path string, entry *ast.MappingValueNode, p any) {
	switch entry.Value.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.AnchorNode, *ast.TagNode, *ast.LiteralNode:
		d.places[path] = placeOf(entry.Key)
	}
	d.value(path, entry.Value, p)
}

// entries goes through a mapping and refuses keys that are there twice.
func (d *document) entries(path string, n ast.Node, visit func(string, *ast.MappingValueNode)) {
	if !isMapping(n) {
		d.fault(path, "want keys and values, not %s", describe(n))
		return
	}
	lines := make(map[string]int)
	for it := n.(ast.MapNode).MapRange(); it.Next(); {
		entry := it.KeyValue()
		at := placeOf(entry.Key)
		key, ok := keyText(entry.Key)
		if !ok {
			d.faultAt(at, "merge keys and keys that are not text are not supported; write the keys out")
			continue
		}
		if first := lines[key]; first > 0 {
			d.faultAt(at, "%s: is already set in line %d; keep one of the two", member(path, key), first)
			continue
		}
		lines[key] = at.line
		visit(key, entry)
	}
}

// sequence reads a list; a lone value is not one.
func (d *document) sequence(path string, n ast.Node, v reflect.Value) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(path, "want a list, not %s; begin each entry with -", describe(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list.Values), len(list.Values)))
	for i, n := range list.Values {
		p := v.Index(i).Addr().Interface()
		initialise(p)
		d.value(element(path, i), n, p)
		if !d.has(element(path, i)) {
			if n != nil {
				d.places[element(path, i)] = placeOf(n)
			}
			d.fault(element(path, i), "is an empty entry; remove the -")
		}
	}
}

// scalar reads a value that is one text.
func (d *document) scalar(path string, n ast.Node, field reflect.Value) {
	var s scalar
	switch n := n.(type) {
	case *ast.StringNode:
		s.text = n.Value
		if n.Token.Type != token.StringType {
			s.kind = quoted
		}
	case *ast.LiteralNode:
		s.text, s.kind = n.Value.Value, quoted
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		s.text, s.kind = n.GetToken().Value, typed
	default:
		kind, _ := scalarOf(field.Type())
		d.fault(path, "want %s, not %s", kind.want, describe(n))
		return
	}
	text, named, err := expand(s.text, d.loader.env)
	if named && text == "" {
		d.emptied[path] = variableOf(s.text)
	}
	if err == nil {
		s.text = text
		if named {
			s.kind = expanded
		}
		err = s.into(field)
	}
	if err != nil {
		d.fault(path, "%s", err)
	}
}

func isMapping(n ast.Node) bool { _, ok := n.(ast.MapNode); return ok }

func keyText(key ast.MapKeyNode) (string, bool) {
	switch key.(type) {
	case *ast.MergeKeyNode, *ast.MappingKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.NullNode:
		return "", false
	}
	return key.GetToken().Value, true
}

// describe is what a node is, in words.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// fieldsOf are the fields of a struct by key, those of inlined structs
// included.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			for name, inner := range fieldsOf(v.Field(i)) {
				fields[name] = inner
			}
		} else if name != "" {
			fields[name] = v.Field(i)
		}
	}
	return fields
}
