// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told is a test that notes its failures.
type told struct {
	testing.TB
	errors, fatal string
}

func (r *told) Helper()                       {}
func (r *told) Errorf(text string, of ...any) { r.errors += fmt.Sprintf(text, of...) }

// Fatalf ends what was called, as that of a test does.
func (r *told) Fatalf(text string, of ...any) {
	r.fatal += fmt.Sprintf(text, of...)
	panic(r)
}

// check is Check in a test of its own.
func check(t *testing.T, path, got string) (r *told) {
	t.Helper()
	r = &told{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
	}()
	Check(r, path, got)
	return r
}

func TestAFileIsComparedAndNotWritten(t *testing.T) {
	t.Setenv(Variable, "")
	path := filepath.Join(t.TempDir(), "a.txt")
	if r := check(t, path, "new"); !strings.Contains(r.fatal, "UPDATE_GOLDEN=1 writes it") {
		t.Errorf("a file that is missing: %q", r.fatal)
	}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := check(t, path, "new"); !strings.Contains(r.errors, "is stale") {
		t.Errorf("another content: %q", r.errors)
	}
	if r := check(t, path, "old"); r.errors != "" || r.fatal != "" {
		t.Errorf("the same content: %q %q", r.errors, r.fatal)
	}
}

func TestAFileIsWrittenWhenAskedFor(t *testing.T) {
	for value, want := range map[string]string{"1": "new", "0": "old", "yes": "old"} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(Variable, value)
			path := filepath.Join(t.TempDir(), "below", "a.txt")
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, path, "new")
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
