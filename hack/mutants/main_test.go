// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stand is a module with one package, of whose three mutants its tests notice one.
type stand struct {
	t   *testing.T
	dir string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{t, t.TempDir()}
	s.write("m/go.mod", "module example.test/m\n\ngo 1.26\n")
	s.write("m/p/p.go", "package p\n\n// IsSmall tells whether n is small.\nfunc IsSmall(n int) bool { return n < 3 }\n")
	s.write("m/p/p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestOneIsSmall(t *testing.T) {\n\tif !IsSmall(1) {\n\t\tt.Error(\"it is not\")\n\t}\n}\n")
	s.write("wanted.txt", "p 70\n")
	s.write("explained.txt", "")
	return s
}

func (s *stand) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) run(args ...string) (string, error) {
	s.t.Helper()
	in := func(name string) string { return filepath.Join(s.dir, name) }
	args = append([]string{
		"--root", in("m"), "--wanted", in("wanted.txt"), "--explained", in("explained.txt"),
		"--journal", in("journal"), "--unexplained", in("unexplained.txt"),
	}, args...)
	var out, errs bytes.Buffer
	err := run(s.t.Context(), args, &out, &errs)
	return out.String(), err
}

func (s *stand) want(out string, lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line+"\n") {
			s.t.Errorf("the output lacks %q:\n%s", line, out)
		}
	}
}

func TestAScoreThatIsTooLowIsAnErrorAndSurvivorsAreNamed(t *testing.T) {
	s := newStand(t)
	out, err := s.run()
	if err == nil || err.Error() != "too many mutants survive in p" {
		t.Errorf("the error is %v", err)
	}
	s.want(out,
		"seed 1, 40 mutants per package",
		"survived p/p.go:4 IsSmall: func IsSmall(n int) bool { return n < 3 } => func IsSmall(n int) bool { return n <= 3 }",
		"survived p/p.go:4 IsSmall: func IsSmall(n int) bool { return n < 3 } => func IsSmall(n int) bool { return n < 4 }",
		"| p       | 1      | 0         | 3  | 33 %  | 70 %   |",
	)
}

func TestSurvivorsThatAreExplainedCount(t *testing.T) {
	s := newStand(t)
	if _, err := s.run(); err == nil {
		t.Fatal("without explanations the score is enough")
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "unexplained.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("explained.txt", strings.ReplaceAll(string(text), "= \n", "= Three is neither small nor large.\n"))
	out, err := s.run()
	if err != nil {
		t.Error(err)
	}
	s.want(out, "| p       | 1      | 2         | 3  | 100 % | 70 %   |")
}

func TestAnExplanationOfNoMutantIsStaleAndOneOfAKilledMutantIsTold(t *testing.T) {
	s := newStand(t)
	s.write("wanted.txt", "p 0\n")
	s.write("explained.txt", `p/p.go IsSmall
- func IsSmall(n int) bool { return n < 3 }
+ func IsSmall(n int) bool { return n >= 3 }
= This is wrong.

p/p.go IsSmall
- return n < 2
+ return n < 3
= This was so once.
`)
	out, err := s.run()
	if err == nil || err.Error() != "1 explanations are stale" {
		t.Errorf("the error is %v", err)
	}
	s.want(out,
		"explained, but killed: p/p.go: IsSmall: func IsSmall(n int) bool { return n < 3 } => func IsSmall(n int) bool { return n >= 3 }",
		"stale explanation: p/p.go: IsSmall: return n < 2 => return n < 3")
}

func TestARunThatIsStoppedSaysWhereAndTheNextOneCarriesOn(t *testing.T) {
	s := newStand(t)
	s.write("wanted.txt", "p 0\n")
	out, err := s.run("--limit", "1ns")
	if !errors.Is(err, errStopped) || !strings.Contains(out, "packages that are not done: p\n") {
		t.Fatalf("the error is %v:\n%s", err, out)
	}
	if _, err := s.run(); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := os.Chtimes(filepath.Join(s.dir, "journal"), before, before.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	out, err = s.run()
	if err != nil {
		t.Fatal(err)
	}
	s.want(out, "| p       | 1      | 0         | 3  | 33 %  | 0 %    |")
	if info, err := os.Stat(filepath.Join(s.dir, "journal")); err != nil || info.ModTime().After(before.Add(-time.Minute)) {
		t.Errorf("mutants were tried again: %v, %v", info, err)
	}
}

func TestRotationsTryEachMutantOfEachPackageOnce(t *testing.T) {
	s := newStand(t)
	s.write("m/q/q.go", "package q\n\n// Two is even.\nfunc Two() bool { return true }\n")
	s.write("m/q/q_test.go", "package q\n\nimport \"testing\"\n\nfunc TestTwo(*testing.T) { Two() }\n")
	s.write("wanted.txt", "q 0\np 0\n")
	survived := map[string]int{}
	for rotation := range 6 { // of two packages, the tenth of ten mutants
		out, err := s.run("--count", "10", "--rotation", strconv.Itoa(rotation))
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		other := []string{"p", "q"}[rotation%2]
		if strings.Contains(out, "| "+other+" ") {
			t.Errorf("rotation %d tries %s:\n%s", rotation, other, out)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if strings.HasPrefix(line, "survived p/") {
				survived[line]++
			}
		}
	}
	for line, times := range survived {
		if times != 1 {
			t.Errorf("%d times: %s", times, line)
		}
	}
	if len(survived) != 2 {
		t.Errorf("the survivors are %v, want the two of the whole run", survived)
	}
}

// Ten tenths of the wanted mutants can be more than a small package has.
func TestARotationBeyondTheMutantsOfAPackageBeginsAnew(t *testing.T) {
	s := newStand(t)
	s.write("wanted.txt", "p 0\n")
	for _, rotation := range []string{"3", "5", "9"} { // of three mutants, one in each rotation
		out, err := s.run("--count", "10", "--rotation", rotation)
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		if !strings.Contains(out, " of 1 killed, 0 explained, of 3 candidates\n") {
			t.Errorf("rotation %s tries another number of mutants than one:\n%s", rotation, out)
		}
	}
}

func TestTheMutantsThatARotationSkipsComeLast(t *testing.T) {
	all := []mutation.Mutant{{Key: mutation.Key{File: "a"}}, {Key: mutation.Key{File: "b"}}, {Key: mutation.Key{File: "c"}}}
	for name, tc := range map[string]struct {
		mutants []mutation.Mutant
		skipped int
		want    string
	}{
		"a skip of none keeps the order":               {all, 0, "abc"},
		"a skip within the mutants":                    {all, 2, "cab"},
		"a skip of all mutants begins anew":            {all, 3, "abc"},
		"a skip of more than all mutants begins anew":  {all, 7, "bca"},
		"a package without mutants has none to skip":   {nil, 7, ""},
		"a package of one mutant has the same forever": {all[:1], 7, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, m := range skipMutants(tc.mutants, tc.skipped) {
				got += m.File
			}
			if got != tc.want {
				t.Errorf("the order is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAPackageWithoutAWantedScoreIsAnError(t *testing.T) {
	s := newStand(t)
	if _, err := s.run("q"); err == nil || !strings.HasSuffix(err.Error(), "q has no wanted score") {
		t.Errorf("the error is %v", err)
	}
	s.write("explained.txt", "q/q.go f\n- a\n+ b\n= c\n")
	if _, err := s.run("p"); err == nil || !strings.HasSuffix(err.Error(), "q has no wanted score") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheTablesOfTheProjectAreRead(t *testing.T) {
	o := options{wanted: "wanted.txt", explained: "explained.txt"}
	wanted, _, err := o.readTables()
	if err != nil || len(wanted) == 0 {
		t.Fatalf("%d packages: %v", len(wanted), err)
	}
	for _, w := range wanted {
		if found, err := filepath.Glob(filepath.Join("../..", w.Package, "*.go")); err != nil || len(found) == 0 {
			t.Errorf("%s has no source: %v", w.Package, err)
		}
	}
}

// A stale explanation would otherwise be seen only by the rotation that tries its package.
func TestEachExplanationOfTheProjectFitsAMutant(t *testing.T) {
	o := options{wanted: "wanted.txt", explained: "explained.txt"}
	_, explained, err := o.readTables()
	if err != nil {
		t.Fatal(err)
	}
	m := measurement{explained: explained}
	files := map[string][]string{}
	for key := range explained {
		if name, path := key.File, filepath.Dir(key.File); !slices.Contains(files[path], name) {
			files[path] = append(files[path], name)
		}
	}
	for path, names := range files {
		mutants, err := listMutants(trial.Target{Root: "../..", Files: names})
		if err != nil {
			t.Error(err)
			continue
		}
		m.findStale(path, mutants)
	}
	for _, key := range m.stale {
		t.Errorf("explained.txt: no mutant is %s: mend the paragraph or take it out", key)
	}
}
