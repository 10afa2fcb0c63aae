// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redirect

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// binary is the program that is tested, built as for its image.
var binary string

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of redirected connections:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("network namespaces need root: repeat with sudo")
	}
	dir, err := os.MkdirTemp("", "redirect")
	if err != nil {
		return 1, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Another user runs it too.
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // an executable
		return 1, fmt.Errorf("opening the directory: %w", err)
	}
	binary = filepath.Join(dir, "redirect")
	if err := server.Build(context.Background(), dir, "redirect"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

const proxyUID = 15700

// arguments are those of an injected pod with both families and exclusions.
func arguments() []string {
	return []string{
		fmt.Sprintf("--proxy-uid=%d", proxyUID), fmt.Sprintf("--capture-port=%d", inject.CapturePort), "--ipv6=true",
		"--exclude-ports=5432", "--exclude-cidrs=203.0.113.0/24,2001:db8:3::/64",
	}
}

// result is what the program told.
type result struct {
	out, err string
	code     int
}

// redirect runs the program in a namespace, as a user.
func (n namespace) redirect(t testing.TB, uid uint32, args ...string) result {
	t.Helper()
	cmd := child.Bind(exec.Command(binary, args...))
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = []string{} // as in an image without anything
	err := n.Do(cmd.Run)
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return result{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode()}
}

// mustRedirect sets the rules.
func (n namespace) mustRedirect(t testing.TB, args ...string) {
	t.Helper()
	if r := n.redirect(t, 0, args...); r.code != 0 || r.err != "" {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
}

func TestTheProgramNeedsNothingOfItsImage(t *testing.T) {
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %s, so it is not static", p.Type)
		}
	}
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it needs %s", strings.Join(libraries, ", "))
	}
}
