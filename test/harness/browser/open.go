// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"os/exec"
	"regexp"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// Flags of the browser.
const (
	// Dark has pages ask for the dark setting of the system.
	Dark = "--blink-settings=preferredColorScheme=0"
	// Light has pages ask for the light setting.
	Light = "--blink-settings=preferredColorScheme=1"
)

var consoleLine = regexp.MustCompile(`(?m)^.*CONSOLE.*$`)

// options are those of each browser: no name of a host is resolved.
func options(t testing.TB) []string {
	return []string{
		"--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--enable-logging=stderr",
	}
}

// Open opens an address of this machine in a browser of its own, which reaches no other host. It returns
// the page as the browser has it when eight seconds of its clock have passed, and the words of the console of the
// browser: errors of scripts, requests that failed, and violations of the content security policy.
func Open(t testing.TB, address string, flags ...string) (dom string, complaints []string) {
	t.Helper()
	args := append(append(options(t), "--virtual-time-budget=8000", "--dump-dom"), flags...)
	cmd := child.Bind(exec.CommandContext(t.Context(), "chromium-headless-shell", append(args, address)...)) //nolint:gosec // the address is that of the test
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("opening %s in chromium-headless-shell, which make preflight installs: %v\n%s", address, err, &log)
	}
	return out.String(), consoleLine.FindAllString(log.String(), -1)
}
