// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestADifferenceIsWhatDiffers(t *testing.T) {
	base := "name: a\n1\n2\n3\n4\n5\n6\n7\n"
	for name, tc := range map[string]struct{ got, want string }{
		"nothing":             {base, ""},
		"a line is added":     {strings.Replace(base, "4\n", "4\nnew\n", 1), "@@ 3 alike, name: a\n 3\n 4\n+new\n 5\n 6\n@@ 2 alike\n"},
		"a line is gone":      {strings.Replace(base, "4\n", "", 1), "@@ 2 alike, name: a\n 2\n 3\n-4\n 5\n 6\n@@ 2 alike\n"},
		"a line is another":   {strings.Replace(base, "4\n", "four\n", 1), "@@ 2 alike, name: a\n 2\n 3\n-4\n+four\n 5\n 6\n@@ 2 alike\n"},
		"the end has no line": {strings.TrimSuffix(base, "\n"), "@@ 6 alike, name: a\n 6\n 7\n-\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, difference(base, tc.got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestADifferenceStandsForOneText: a change of the text that its difference did not show
// would pass unnoticed.
func TestADifferenceStandsForOneText(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "  name: c", "", "-", "+", "@@ 1 alike"}), 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		base := strings.Join(lines.Draw(t, "base"), "\n")
		got := strings.Join(lines.Draw(t, "got"), "\n")
		again, err := apply(base, difference(base, got))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestADifferenceThatDoesNotFitIsNotApplied(t *testing.T) {
	for name, script := range map[string]string{
		"another line": " x\n@@ 2 alike\n", "a line that is not there": "-x\n@@ 3 alike\n", "more lines": "@@ 9 alike\n",
		"fewer lines": "@@ 1 alike\n", "no number": "@@ some alike\n", "no line of a difference": "x\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := apply("a\nb\n", script); err == nil {
				t.Errorf("it was applied: %q", got)
			}
		})
	}
}

func TestAFileOfADifferenceIsReadWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.diff")
	base := filepath.Join(filepath.Dir(path), "a.txt")
	if err := os.WriteFile(base, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, "1")
	CheckDifference(t, "a.txt", path, "1\n3\n")
	t.Setenv(Variable, "")
	r := &told{TB: t}
	CheckDifference(r, "a.txt", path, "1\n4\n")
	if !strings.Contains(r.errors, "is stale") {
		t.Errorf("another text: %q", r.errors)
	}
	for of, want := range map[string]string{path: "1\n3\n", base: "1\n2\n"} {
		if diff := cmp.Diff(want, Read(t, of)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
	}
}
