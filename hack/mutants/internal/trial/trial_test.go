// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// module has a package with a test that notices some changes and misses others.
var module = map[string]string{
	"go.mod": "module example.test/m\n\ngo 1.26\n",
	"p/p.go": `package p

import "strings"

// Count counts up to a limit.
func Count(limit int) int {
	n := 0
	for n < limit {
		n++
	}
	note(n)
	return n
}

func note(int) {}

// Loud returns the text in upper case.
func Loud(text string) string {
	var b strings.Builder
	b.WriteString(strings.ToUpper(text))
	return b.String()
}
`,
	"p/p_test.go": `package p

import "testing"

func TestItCountsToThree(t *testing.T) {
	if got := Count(3); got != 3 {
		t.Errorf("got %d", got)
	}
	if got := Loud("a"); got != "A" {
		t.Errorf("got %s", got)
	}
}
`,
	"p/testdata/deep/x": "x",
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads all files below a directory.
func read(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func load(t *testing.T, root string) Target {
	t.Helper()
	target, err := LoadTarget(t.Context(), root, "p")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func find(t *testing.T, root, key string) *mutation.Mutant {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, "p/p.go"))
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := mutation.ListMutants("p/p.go", source)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(mutants, func(m mutation.Mutant) bool { return m.Old+" => "+m.New == key })
	if i < 0 {
		t.Fatalf("there is no mutant %s among %v", key, mutants)
	}
	return &mutants[i]
}

func TestAMutantIsKilledOrSurvivesOrDoesNotCompileAndLeavesNoTrace(t *testing.T) {
	root, scratch := t.TempDir(), t.TempDir()
	write(t, root, module)
	r, err := NewRunner(t.Context(), load(t, root), scratch)
	if err != nil {
		t.Fatal(err)
	}
	if r.limit < leastTime {
		t.Errorf("a mutant may take %s", r.limit)
	}
	const endless = "n++ => n--" // it counts without end
	for key, want := range map[string]campaign.Verdict{
		"for n < limit { => for n <= limit {":               campaign.Killed,
		"note(n) => (dropped)":                              campaign.Survived,
		"b.WriteString(strings.ToUpper(text)) => (dropped)": campaign.Killed,
		endless: campaign.Killed,
	} {
		t.Run(key, func(t *testing.T) {
			r.limit = time.Minute
			if key == endless {
				r.limit = time.Second
			}
			got, err := r.TryMutant(t.Context(), find(t, root, key))
			if err != nil || got != want {
				t.Errorf("it is %q, want %q; the error is %v", got, want, err)
			}
		})
	}
	m := mutation.Mutant{Key: mutation.Key{File: "p/p.go"}, Text: "func"}
	if got, err := r.TryMutant(t.Context(), &m); err != nil || got != campaign.NotCompiled {
		t.Errorf("it is %q; the error is %v", got, err)
	}
	if diff := cmp.Diff(module, read(t, root)); diff != "" {
		t.Errorf("the module is another one (-before +after):\n%s", diff)
	}
	if left := read(t, scratch); len(left) > 0 {
		t.Errorf("files are left: %v", slices.Collect(maps.Keys(left)))
	}
}

func TestAFileThatIsNotThereIsNoVerdict(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	r := &Runner{target: load(t, root), scratch: t.TempDir(), limit: time.Minute}
	m := mutation.Mutant{Key: mutation.Key{File: "p/gone.go"}}
	if got, err := r.TryMutant(t.Context(), &m); got != "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is %q; the error is %v", got, err)
	}
}

func TestARunThatIsStoppedIsNoVerdict(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	r := &Runner{target: load(t, root), scratch: t.TempDir(), limit: time.Minute}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if got, err := r.TryMutant(ctx, find(t, root, "n++ => n--")); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("it is %q; the error is %v", got, err)
	}
}

func TestTestsThatFailWithoutAMutantAreAnError(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	write(t, root, map[string]string{"p/p_test.go": strings.ReplaceAll(module["p/p_test.go"], "!= 3", "== 3")})
	_, err := NewRunner(t.Context(), load(t, root), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "running the tests of p without a mutant") || !strings.Contains(err.Error(), "TestItCountsToThree") {
		t.Errorf("the error is %v", err)
	}
}

func TestADigestChangesWithAllThatAVerdictDependsOn(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	before := load(t, root)
	if diff := cmp.Diff([]string{"p/p.go"}, before.Files); diff != "" || before.Rapid {
		t.Errorf("the target is %+v", before)
	}
	if again := load(t, root); again.Digest != before.Digest {
		t.Errorf("the digest of the same files is %s and %s", before.Digest, again.Digest)
	}
	for name, text := range map[string]string{
		"p/p.go": "\n// A comment.\n", "p/p_test.go": "\n// A comment.\n", "p/testdata/deep/x": "y", "go.mod": "\n// A comment.\n",
	} {
		t.Run(name, func(t *testing.T) {
			write(t, root, map[string]string{name: module[name] + text})
			if after := load(t, root); after.Digest == before.Digest {
				t.Errorf("the digest does not change")
			}
			write(t, root, map[string]string{name: module[name]})
		})
	}
}

func TestADigestChangesWithTheArgumentsAndNotWithTheTestsOfImports(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	write(t, root, map[string]string{
		"q/q.go":      "package q\n\nimport _ \"example.test/m/p\"\n",
		"q/q_test.go": "package q\n",
	})
	digest := func(arguments ...string) string {
		target, err := LoadTarget(t.Context(), root, "q", arguments...)
		if err != nil {
			t.Fatal(err)
		}
		return target.Digest
	}
	before := digest()
	if digest("-test.short") == before {
		t.Error("the digest does not change with the arguments")
	}
	write(t, root, map[string]string{"p/p_test.go": module["p/p_test.go"] + "\n// A comment.\n"})
	if digest() != before {
		t.Error("the digest changes with the tests of an import")
	}
	write(t, root, map[string]string{"p/p.go": module["p/p.go"] + "\n// A comment.\n"})
	if digest() == before {
		t.Error("the digest does not change with an import")
	}
}

// The arguments choose the test: the other one would kill the mutant.
func TestATestBinaryIsRunWithTheArguments(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	target, err := LoadTarget(t.Context(), root, "p", "-test.run=TestNone")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{target: target, scratch: t.TempDir(), limit: time.Minute}
	if got, err := r.TryMutant(t.Context(), find(t, root, "for n < limit { => for n <= limit {")); err != nil || got != campaign.Survived {
		t.Errorf("it is %q; the error is %v", got, err)
	}
}

func TestAPackageWithoutSourceIsAnError(t *testing.T) {
	root := t.TempDir()
	write(t, root, module)
	if _, err := LoadTarget(t.Context(), root, "q"); err == nil || !strings.HasPrefix(err.Error(), "listing package") {
		t.Errorf("the error is %v", err)
	}
}
