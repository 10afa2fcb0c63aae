// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Finding H2: without consent another namespace knew every Service.
func TestAServiceIsExportedTo(t *testing.T) {
	tests := map[string]struct {
		service   *string
		namespace string
		want      ir.Export
		problems  string
	}{
		"no namespace without an annotation":                  {nil, "", ir.Export{}, ""},
		"the namespaces that its annotation names":            {new(" pay, bank,,pay"), "", ir.Export{Namespaces: []string{"bank", "pay"}}, ""},
		"every namespace":                                     {new("*"), "", ir.Export{All: true}, ""},
		"the namespaces that the annotation of its own names": {nil, "pay", ir.Export{Namespaces: []string{"pay"}}, ""},
		"those of its own annotation and not its namespace's": {new("bank"), "*", ir.Export{Namespaces: []string{"bank"}}, ""},
		"no namespace if its own annotation is empty":         {new(""), "*", ir.Export{}, ""},
		"no namespace if one entry is wrong": {new("pay, Bank"), "*", ir.Export{},
			`Service shop/web: InvalidExport: annotation plumbline.dev/export-to: "Bank" is no name of a namespace: write names separated by commas, or "*" for all namespaces`},
		"no namespace if the star has company": {new("*,pay"), "", ir.Export{},
			`Service shop/web: InvalidExport: annotation plumbline.dev/export-to: "*" stands for all namespaces: write it alone, or take it out`},
		"no namespace if its namespace's annotation is wrong": {nil, "shop/*", ir.Export{},
			`Namespace shop: InvalidExport: annotation plumbline.dev/export-to: "shop/*" is no name of a namespace: write names separated by commas, or "*" for all namespaces`},
		"no namespace if the annotation is too long": {new(manyNamespaces(ir.MaxExports + 1)), "", ir.Export{},
			`Service shop/web: InvalidExport: annotation plumbline.dev/export-to: more than 100 namespaces are named: write "*" for all namespaces, or fewer names`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := ir.Inputs{Services: []*corev1.Service{web(func(s *corev1.Service) {
				if tc.service != nil {
					s.Annotations = map[string]string{ir.ExportToAnnotation: *tc.service}
				}
			})}}
			if tc.namespace != "" {
				in.Exports = map[string]string{"shop": tc.namespace}
			}
			m := ir.Build(in)
			if len(m.Services) != 1 {
				t.Fatalf("%d Services are managed, want the one", len(m.Services))
			}
			if d := cmp.Diff(tc.want, m.Services[0].Export); d != "" {
				t.Errorf("the export (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}

func manyNamespaces(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("n", i))
	}
	return strings.Join(names, ",")
}

func TestAServiceIsKnownToItsOwnNamespaceAndToThoseThatAreNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.SampledFrom([]string{"a", "b", "c-1", "*", "", " a ", "A", "a.b", "-"})
		entries := rapid.SliceOfN(entry, 0, 4).Draw(t, "entries")
		asks := rapid.SampledFrom([]string{"a", "b", "c-1", "own"}).Draw(t, "asks")
		export, err := ir.ParseExport(strings.Join(entries, ","))
		got := ir.Service{Namespace: "own", Export: export}.KnownTo(asks)
		if want := asks == "own" || naivelyNamed(entries, asks); got != want {
			t.Fatalf("%q is known to %s: %t, want %t (%v)", entries, asks, got, want, err)
		}
	})
}

// naivelyNamed reads the whole list for each question.
func naivelyNamed(entries []string, namespace string) bool {
	var names []string
	for _, e := range entries {
		if e = strings.TrimSpace(e); e != "" {
			names = append(names, e)
		}
	}
	if slices.Contains(names, "A") || slices.Contains(names, "a.b") || slices.Contains(names, "-") {
		return false
	}
	if slices.Contains(names, "*") {
		return len(names) == 1
	}
	return slices.Contains(names, namespace)
}

func FuzzParseExport(f *testing.F) {
	for _, seed := range []string{"", "*", "a,b", "a, *", "shop/*", "\x00", manyNamespaces(200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		export, err := ir.ParseExport(annotation)
		switch {
		case err != nil && (export.All || export.Namespaces != nil):
			t.Errorf("%q is wrong (%v) and exports to %+v", annotation, err, export)
		case export.All && !strings.Contains(annotation, "*"):
			t.Errorf("%q exports to all namespaces", annotation)
		case !slices.IsSorted(export.Namespaces) || len(export.Namespaces) > ir.MaxExports:
			t.Errorf("%q exports to %q", annotation, export.Namespaces)
		}
	})
}
