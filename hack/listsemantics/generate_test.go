// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const committed = "../../pkg/specguard/canon/zz_generated_listsemantics.go"

// The table is part of pl1. When this fails after an update of client-go, the
// semantics of a list changed: do not regenerate, that is pl2.
func TestTheCommittedTableIsThatOfTheSchema(t *testing.T) {
	want, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-schema +committed):\n%s", committed, diff)
	}
}

func TestRunWritesTheTable(t *testing.T) {
	output := filepath.Join(t.TempDir(), "table.go")
	if err := run(output); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("written table (-committed +written):\n%s", diff)
	}
	if err := run(filepath.Join(output, "x")); err == nil {
		t.Error("writing below a file succeeded")
	}
}

func TestTheTableKnowsWhereOrderCounts(t *testing.T) {
	built, err := buildTable()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]typeEntry{}
	for _, entry := range built.types {
		if entry.mode == "KeyedOrdered" || entry.references {
			got[entry.comment] = typeEntry{mode: entry.mode, keys: entry.keys, references: entry.references}
		}
	}
	want := map[string]typeEntry{
		"list of io.k8s.api.core.v1.Container": {mode: "KeyedOrdered", keys: []string{"name"}},
		"list of io.k8s.api.core.v1.EnvVar":    {mode: "Keyed", keys: []string{"name"}, references: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(typeEntry{})); diff != "" {
		t.Errorf("lists whose order counts (-want +got):\n%s", diff)
	}
}
