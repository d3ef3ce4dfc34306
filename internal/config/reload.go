package config

import (
	"reflect"
	"slices"
	"strings"
)

// reloadable are the sections and keys that a running service takes over.
var reloadable = []string{"limits", "operator.sign_in", "operator.roles", "operator.idle", "operator.absolute", "sign_in", "log.level", "providers", "catalog", "catalog_files", "prices"}

// RestartNeeded lists the keys that differ and that a running service does
// not take over, such as server.listen, in the order of the reference manual.
func RestartNeeded(old, new *Config) []string {
	return differences("", reflect.ValueOf(old.Settings), reflect.ValueOf(new.Settings))
}

func differences(path string, a, b reflect.Value) (keys []string) {
	if slices.Contains(reloadable, path) {
		return nil
	}
	if secret, ok := a.Interface().(Secret); ok {
		if !secret.Equal(b.Interface().(Secret)) {
			return []string{path}
		}
		return nil
	}
	if a.Kind() != reflect.Struct {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return []string{path}
		}
		return nil
	}
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, differences(member(path, name), a.Field(i), b.Field(i))...)
	}
	return keys
}
