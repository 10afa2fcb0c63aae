// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds each wait for the browser.
const patience = 30 * time.Second

// Session is a browser that a test drives with the keyboard, by the DevTools protocol over two pipes.
type Session struct {
	t    testing.TB
	to   io.Writer
	page string

	mu         sync.Mutex
	last       int
	answers    map[int]chan answer
	complaints []string
	loads      chan struct{}
}

// answer is one message of the browser.
type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts a browser that ends with the test.
func Start(t testing.TB, flags ...string) *Session {
	t.Helper()
	args := append(append(options(t), "--remote-debugging-pipe"), flags...)
	cmd := child.Bind(exec.CommandContext(t.Context(), "chromium-headless-shell", append(args, "about:blank")...)) //nolint:gosec // the flags are those of the test
	theirIn, ourOut := pipe(t)
	ourIn, theirOut := pipe(t)
	var log bytes.Buffer
	cmd.ExtraFiles, cmd.Stderr, cmd.WaitDelay = []*os.File{theirIn, theirOut}, &log, patience
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting chromium-headless-shell, which make preflight installs: %v", err)
	}
	closeAll(t, theirIn, theirOut)
	s := &Session{t: t, to: ourOut, answers: map[int]chan answer{}, loads: make(chan struct{}, 1000)}
	ended := make(chan struct{})
	go func() { defer close(ended); s.read(ourIn) }()
	t.Cleanup(func() {
		closeAll(t, ourOut)
		_ = cmd.Process.Kill() // the answer is the end
		_ = cmd.Wait()
		<-ended
		closeAll(t, ourIn)
		if t.Failed() {
			t.Logf("the browser says %s", &log)
		}
	})
	var target struct{ TargetID, SessionID string }
	s.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	s.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	s.page = target.SessionID
	for _, domain := range []string{"Page.enable", "Runtime.enable", "Log.enable", "DOM.enable"} {
		s.ask(domain, nil, nil)
	}
	s.ask("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	return s
}

func pipe(t testing.TB) (in, out *os.File) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

func closeAll(t testing.TB, files ...*os.File) {
	t.Helper()
	for _, file := range files {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// read takes messages until the browser ends. Each ends in a zero byte.
func (s *Session) read(from io.Reader) {
	messages := bufio.NewReader(from)
	for {
		raw, err := messages.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &a); err != nil {
			s.complain("a message that is no JSON: " + string(raw))
			continue
		}
		s.take(&a)
	}
}

// take hands an answer to its request, and keeps the complaints of the browser.
func (s *Session) take(a *answer) {
	switch a.Method {
	case "":
		s.mu.Lock()
		asked := s.answers[a.ID]
		delete(s.answers, a.ID)
		s.mu.Unlock()
		if asked != nil {
			asked <- *a
		}
	case "Page.loadEventFired":
		s.loads <- struct{}{}
	case "Runtime.exceptionThrown", "Log.entryAdded":
		s.complain(string(a.Params))
	case "Runtime.consoleAPICalled":
		if !strings.Contains(string(a.Params), `"type":"log"`) {
			s.complain(string(a.Params))
		}
	}
}

func (s *Session) complain(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complaints = append(s.complaints, words)
}

// Complaints are the errors of scripts, requests that failed, and violations of the content security policy.
func (s *Session) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.complaints...)
}

// ask sends a command, and reads its result into a value.
func (s *Session) ask(method string, params, into any) {
	s.t.Helper()
	if err := s.try(method, params, into); err != nil {
		s.t.Fatal(err)
	}
}

// try is ask for a command that the browser may refuse.
func (s *Session) try(method string, params, into any) error {
	s.t.Helper()
	answered := make(chan answer, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.answers[id] = answered
	s.mu.Unlock()
	command := map[string]any{"id": id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if s.page != "" {
		command["sessionId"] = s.page
	}
	raw, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", method, err)
	}
	if _, err := s.to.Write(append(raw, 0)); err != nil {
		return fmt.Errorf("telling the browser %s: %w", method, err)
	}
	got := poll.Receive(s.t, patience, "the answer of the browser to "+method, answered)
	if got.Error != nil {
		return fmt.Errorf("%s: %s", method, got.Error.Message)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(got.Result, into); err != nil {
		return fmt.Errorf("%s: %w in %s", method, err, got.Result)
	}
	return nil
}

// Open opens an address, and waits until the page is loaded.
func (s *Session) Open(address string) {
	s.t.Helper()
	for len(s.loads) > 0 {
		<-s.loads
	}
	var gone struct{ ErrorText string }
	s.ask("Page.navigate", map[string]any{"url": address}, &gone)
	if gone.ErrorText != "" {
		s.t.Fatalf("opening %s: %s", address, gone.ErrorText)
	}
	poll.Receive(s.t, patience, address+" is loaded", s.loads)
}

// WithoutScript has pages that are opened from now on run no script.
func (s *Session) WithoutScript() {
	s.t.Helper()
	s.ask("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
}

// HTML is the page as the browser has it.
func (s *Session) HTML() string {
	s.t.Helper()
	html, err := s.html()
	if err != nil {
		s.t.Fatal(err)
	}
	return html
}

// html fails where another page takes the place of the one that is asked for.
func (s *Session) html() (string, error) {
	s.t.Helper()
	var html struct{ OuterHTML string }
	err := s.try("DOM.getOuterHTML", map[string]any{"nodeId": s.document()}, &html)
	return html.OuterHTML, err
}

func (s *Session) document() int {
	s.t.Helper()
	var document struct{ Root struct{ NodeID int } }
	s.ask("DOM.getDocument", map[string]any{"depth": 0}, &document)
	return document.Root.NodeID
}

// Await waits until the page has all words, and returns the page.
func (s *Session) Await(words ...string) (html string) {
	s.t.Helper()
	for _, want := range words {
		poll.True(s.t, patience, "the page has "+strconv.Quote(want), func() bool {
			now, err := s.html()
			if err == nil {
				html = now
			}
			return strings.Contains(html, want)
		})
	}
	return html
}

// Focus puts the focus at the element of a selector, as a click does.
func (s *Session) Focus(selector string) {
	s.t.Helper()
	var found struct{ NodeID int }
	s.ask("DOM.querySelector", map[string]any{"nodeId": s.document(), "selector": selector}, &found)
	if found.NodeID == 0 {
		s.t.Fatalf("no element is %s in %s", selector, s.HTML())
	}
	s.ask("DOM.focus", map[string]any{"nodeId": found.NodeID}, nil)
}

// Eval returns the value of an expression of a script, as a text.
func (s *Session) Eval(expression string) string {
	s.t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	s.ask("Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")", "returnByValue": true}, &got)
	text, is := got.Result.Value.(string)
	if !is {
		s.t.Fatalf("%s: %s", expression, got.ExceptionDetails)
	}
	return text
}

// maxTabs is how often a reader presses Tab to come to the end of a page.
const maxTabs = 200

// TabTo presses Tab until the focus is at the element of a selector.
func (s *Session) TabTo(selector string) {
	s.t.Helper()
	for range maxTabs {
		s.Press(Tab)
		if s.Eval("document.activeElement.matches("+strconv.Quote(selector)+")") == "true" {
			return
		}
	}
	s.t.Fatalf("Tab does not lead to %s", selector)
}

// Type writes a text where the focus is.
func (s *Session) Type(text string) {
	s.t.Helper()
	s.ask("Input.insertText", map[string]any{"text": text}, nil)
}

// Key is a key of the keyboard.
type Key struct {
	name, text string
	code       int
}

// The keys.
var (
	Tab   = Key{"Tab", "", 9}
	Enter = Key{"Enter", "\r", 13}
)

// Press presses a key, and lets it go.
func (s *Session) Press(key Key) {
	s.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": key.name, "code": key.name, "windowsVirtualKeyCode": key.code}
		if kind == "keyDown" && key.text != "" {
			event["text"] = key.text
		}
		s.ask("Input.dispatchKeyEvent", event, nil)
	}
}
