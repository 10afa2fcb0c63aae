// SPDX-License-Identifier: Apache-2.0

package schemata

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/test/harness/child"
)

const program = `package main

import "fmt"

type number int

func (n number) add(_ string, more ...int) number {
	for _, m := range more {
		n += number(m)
	}
	return n
}

func (number) name(...string) string { return "number" }

func largest[T int | number](all ...T) (most T) {
	for _, one := range all {
		most = max(most, one)
	}
	return most
}

func tell(text string) {
	fmt.Println(text)
}

const limit = 3

func main() {
	tell(fmt.Sprintf("%d %s %d", number(1).add("x", 2, 3), number(0).name("y"), largest(1, limit)))
}
`

func mutant(t *testing.T, old, text string) mutation.Mutant {
	t.Helper()
	at := strings.Index(program, old)
	if at < 0 {
		t.Fatalf("the program lacks %q", old)
	}
	return mutation.Mutant{Key: mutation.Key{File: "main.go"}, Start: at, End: at + len(old), Text: text}
}

func TestEachMutantRunsInOneProgramWhenItIsChosen(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test/m\n\ngo 1.26\n", "main.go": program} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := WriteOverlay(root, dir, []mutation.Mutant{
		mutant(t, "n += number(m)", "n -= number(m)"),
		mutant(t, "return n\n", "return 0\n"),
		mutant(t, `return "number"`, `return "none"`),
		mutant(t, "max(most, one)", "min(most, one)"),
		mutant(t, "fmt.Println(text)", "fmt.Println(text, text)"),
	})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	build := child.Bind(exec.Command("go", "build", "-overlay", overlay, "-o", binary, "."))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v: %s", err, out)
	}
	var got []string
	for chosen := range 6 {
		run := child.Bind(exec.Command(binary))
		run.Env = append(os.Environ(), Variable+"="+strconv.Itoa(chosen))
		out, err := run.Output()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(string(out)))
	}
	want := []string{"6 number 3", "-4 number 3", "0 number 3", "6 none 3", "6 number 0", "6 number 3 6 number 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the mutants tell (-want +got):\n%s", diff)
	}
}

func TestAMutantOutsideOfAFunctionIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := WriteOverlay(root, t.TempDir(), []mutation.Mutant{mutant(t, "limit = 3", "limit = 4")})
	if !errors.Is(err, errNoFunction) {
		t.Errorf("the error is %v", err)
	}
}
