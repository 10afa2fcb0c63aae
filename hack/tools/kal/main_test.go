// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExceptions_HaveReasons(t *testing.T) {
	for _, e := range exceptions {
		if e.linter == "" || e.message == "" || e.reason == "" {
			t.Errorf("an exception names its linter, part of the message, and a reason: %+v", e)
		}
	}
}

func TestFilter(t *testing.T) {
	found := []finding{{"a.go:1:1", "maxlength", "field A.B must have a maximum"}, {"a.go:2:1", "nobools", "field A.C"}}
	used, unused := exception{"maxlength", "A.B", "r"}, exception{"nobools", "A.D", "r"}
	rest, stale := filter(found, []exception{used, unused})
	if len(rest) != 1 || rest[0] != found[1] {
		t.Errorf("not silenced: %v, want the second", rest)
	}
	if len(stale) != 1 || stale[0] != unused {
		t.Errorf("stale: %v, want the second", stale)
	}
}

// TestRun_FindsAndFails lints a type that breaks a rule: a linter that sees
// nothing would pass everything.
func TestRun_FindsAndFails(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/api\n\ngo 1.26.0\n")
	write("types.go", "package api\n\n// Spec is a spec.\ntype Spec struct {\n\t// on is a switch.\n\t// +optional\n\tOn *bool `json:\"on,omitempty\"`\n\tName string `json:\"name\"`\n}\n")
	var out strings.Builder
	err := run([]string{"-C", dir, "./..."}, &out)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"nobools", "optionalorrequired", "maxlength"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s among the findings:\n%s", want, out.String())
		}
	}
}

func TestRun_RefusesWhatDoesNotCompile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/api\n\ngo 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte("package api\n\ntype Spec struct { A Missing }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-C", dir, "./..."}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "loading packages") {
		t.Errorf("got %v, want an error about loading", err)
	}
}
