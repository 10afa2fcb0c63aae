// SPDX-License-Identifier: Apache-2.0

package runtimeapi

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// program answers each command at a socket, and keeps the commands.
type program struct {
	socket string
	mu     sync.Mutex
	asked  []string
}

func start(t *testing.T, answers map[string]string) *program {
	t.Helper()
	p := &program{socket: filepath.Join(t.TempDir(), "socket")}
	l, err := net.Listen("unix", p.socket) //nolint:noctx // closed below
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // ends the loop
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			sent, _ := io.ReadAll(c) // as the master does, to the end
			command := strings.TrimSuffix(string(sent), "\n")
			p.mu.Lock()
			p.asked = append(p.asked, command)
			p.mu.Unlock()
			_, _ = io.WriteString(c, answers[command]) // the client sees a connection that ends
			_ = c.Close()
		}
	}()
	return p
}

func (p *program) commands() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func TestAnEntryThatIsMissingIsAdded(t *testing.T) {
	p := start(t, map[string]string{
		"set map /splits.map new 1": "entry not found.\n\n", "add map /splits.map new 1": "\n", "set map /splits.map old 1": "\n",
		"set map /other.map old 1": "Unknown map identifier. Please use #<id> or <file>.\n\n",
	})
	c := Client{Socket: p.socket}
	for _, key := range []string{"old", "new"} {
		if err := c.SetMap(t.Context(), "/splits.map", key, "1"); err != nil {
			t.Error(err)
		}
	}
	want := "set map /splits.map old 1|set map /splits.map new 1|add map /splits.map new 1"
	if got := strings.Join(p.commands(), "|"); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	var refused *ProgramError
	if err := c.SetMap(t.Context(), "/other.map", "old", "1"); !errors.As(err, &refused) || !strings.HasPrefix(refused.Said, "Unknown map") {
		t.Errorf("error %v, want the program's words", err)
	}
}

func TestAWorkerIsAskedByTheMaster(t *testing.T) {
	p := start(t, map[string]string{"@!7 show info": "Pid: 7\nUptime_sec: 1\n", "@!8 show info": "Can't find the target PID matching the prefix '@!8'\n"})
	if info, err := (Client{Socket: p.socket, PID: 7}).Info(t.Context()); err != nil || info.PID != 7 {
		t.Errorf("worker %+v (%v)", info, err)
	}
	var gone *GoneError
	if _, err := (Client{Socket: p.socket, PID: 8}).Info(t.Context()); !errors.As(err, &gone) || gone.PID != 8 {
		t.Errorf("error %v, want that worker 8 is gone", err)
	}
}

func TestWhatWouldEndACommandIsNotSent(t *testing.T) {
	p := start(t, nil)
	for _, word := range []string{"", "a b", "a\nclear map x", "a;shutdown", `a\`, "<<", "\t", "\x7f"} {
		if err := (Client{Socket: p.socket}).SetMap(t.Context(), "/splits.map", "key", word); err == nil {
			t.Errorf("%q was sent", word)
		}
	}
	if asked := p.commands(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

func TestAProgramThatRefusesIsHeard(t *testing.T) {
	p := start(t, map[string]string{"show info": "Permission denied\n"})
	var refused *ProgramError
	if _, err := (Client{Socket: p.socket}).Info(t.Context()); !errors.As(err, &refused) || refused.Said != "Permission denied" {
		t.Errorf("error %v", err)
	}
	if _, err := (Client{Socket: filepath.Join(t.TempDir(), "none")}).Info(t.Context()); err == nil {
		t.Error("a socket that is not there answers")
	}
	if _, err := (Client{Socket: p.socket}).Stats(t.Context()); err == nil {
		t.Error("an empty answer is statistics")
	}
}
