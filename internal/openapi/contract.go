// Package openapi is the description of the HTTP API, OpenAPI 3.1. It is
// written by hand in api/*.yaml, a file for each noun; the reference page and
// the clients are made from it, and the tests hold every route and every
// exchange of the specification's scripts against it.
package openapi

import (
	"bytes"
	"embed"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
)

//go:embed api/*.yaml
var files embed.FS

// base is the file that the others are joined to.
const base = "base.yaml"

// Document is the description as JSON: base.yaml with the paths and the
// components of all other files, in the order of their names. Two files that
// describe the same thing are an error.
func Document() ([]byte, error) {
	root, err := read(base)
	if err != nil {
		return nil, err
	}
	entries, err := files.ReadDir("api")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == base {
			continue
		}
		part, err := read(e.Name())
		if err != nil {
			return nil, err
		}
		if root, err = join(root, part, ""); err != nil {
			return nil, fmt.Errorf("api/%s: %w", e.Name(), err)
		}
	}
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out)
	if err := write(enc, root); err != nil {
		return nil, fmt.Errorf("encode the contract: %w", err)
	}
	return out.Bytes(), nil
}

func read(name string) (yaml.MapSlice, error) {
	text, err := files.ReadFile("api/" + name)
	if err != nil {
		return nil, err
	}
	var out yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &out, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("api/%s: %w", name, err)
	}
	return out, nil
}

// mergeDepth is how deep files are joined: components, the kind of
// component, and below it only new names.
const mergeDepth = 2

// join adds the members of a part to a whole. Above mergeDepth, objects that
// both have are joined in turn.
func join(whole, part yaml.MapSlice, path string) (yaml.MapSlice, error) {
	for _, item := range part {
		i := index(whole, item.Key)
		if i < 0 {
			whole = append(whole, item)
			continue
		}
		at := fmt.Sprintf("%s/%v", path, item.Key)
		into, ok := whole[i].Value.(yaml.MapSlice)
		from, same := item.Value.(yaml.MapSlice)
		if !ok || !same || bytes.Count([]byte(path), []byte("/")) >= mergeDepth {
			return nil, fmt.Errorf("%s is described twice", at)
		}
		joined, err := join(into, from, at)
		if err != nil {
			return nil, err
		}
		whole[i].Value = joined
	}
	return whole, nil
}

func index(m yaml.MapSlice, key any) int {
	for i := range m {
		if m[i].Key == key {
			return i
		}
	}
	return -1
}

// write encodes what YAML held, members in their order.
func write(enc *jsontext.Encoder, value any) error {
	switch v := value.(type) {
	case yaml.MapSlice:
		if err := enc.WriteToken(jsontext.BeginObject); err != nil {
			return err
		}
		for _, item := range v {
			if err := enc.WriteToken(jsontext.String(fmt.Sprint(item.Key))); err != nil {
				return err
			}
			if err := write(enc, item.Value); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndObject)
	case []any:
		if err := enc.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
		for _, item := range v {
			if err := write(enc, item); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndArray)
	}
	return json.MarshalEncode(enc, value)
}
