// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// lie is how an answer begins, and what it goes on with for ever.
type lie struct{ begin, again string }

// lies are the kinds of answers that end a process which believes them. All of
// them, at every place of an answer, are told in the tests of
// pkg/specguard/details.
var lies = map[string]lie{
	"another protocol":             {begin: "HTTP/1.1 200 OK\r\n\r\n"},
	"another type":                 {begin: "+OK\r\n"},
	"a string of a terabyte":       {begin: "*2\r\n$1099511627776\r\nx"},
	"the largest string":           {begin: "*2\r\n$11\r\nfirst-entry\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$9223372036854775805\r\nx"},
	"the largest array":            {begin: "*9223372036854775807\r\n"},
	"pushes without end":           {again: ">2\r\n+message\r\n+x\r\n"},
	"arrays in arrays without end": {again: "*1\r\n"},
	"a string without end":         {begin: "*2\r\n$1000000000\r\n", again: "x"},
	"a redirection":                {begin: "-MOVED 1 127.0.0.1:1\r\n"},
}

// liar answers every command with the next lie of its list.
type liar struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu   sync.Mutex
	next map[string]int            // by the kind of asker
	told map[string]map[string]int // kind of asker, lie
}

func startLiar(t *testing.T) *liar {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	liar := &liar{listener: l, next: map[string]int{}, told: map[string]map[string]int{}}
	liar.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			liar.wg.Go(func() { liar.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // it is a test's
		liar.wg.Wait()
	})
	return liar
}

func (l *liar) serve(c net.Conn) {
	defer func() { _ = c.Close() }() // it is a test's
	questions := bufio.NewReader(c)
	for {
		command, err := question(questions)
		if err != nil || l.answer(c, command) != nil {
			return
		}
	}
}

// question reads one command and gives its name.
func question(from *bufio.Reader) (name string, err error) {
	head, err := from.ReadString('\n')
	if err != nil {
		return "", err
	}
	words, err := strconv.Atoi(strings.Trim(head, "*\r\n"))
	for range words {
		length, readErr := from.ReadString('\n')
		if readErr != nil {
			return "", readErr
		}
		size, convErr := strconv.Atoi(strings.Trim(length, "$\r\n"))
		raw := make([]byte, size+2)
		if _, err = io.ReadFull(from, raw); err != nil || convErr != nil {
			return "", errors.Join(err, convErr)
		}
		if name == "" {
			name = strings.ToLower(string(raw[:size]))
		}
	}
	return name, err
}

// answer tells the next lie. Only the webhook writes or pings.
func (l *liar) answer(to io.Writer, command string) error {
	asker := "webhook"
	if command == "xinfo" || command == "xread" {
		asker = "assessor"
	}
	l.mu.Lock()
	names := slices.Sorted(maps.Keys(lies))
	name := names[l.next[asker]%len(names)]
	l.next[asker]++
	if l.told[asker] == nil {
		l.told[asker] = map[string]int{}
	}
	l.told[asker][name]++
	l.mu.Unlock()
	_, err := io.WriteString(to, lies[name].begin)
	for again := strings.Repeat(lies[name].again, 1000); again != "" && err == nil; {
		_, err = io.WriteString(to, again)
	}
	return err
}

// untold are the lies that were not told to both yet.
func (l *liar) untold() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range lies {
		for _, asker := range []string{"webhook", "assessor"} {
			if l.told[asker][name] == 0 {
				names = append(names, name+" to the "+asker)
			}
		}
	}
	return names
}

func TestARedisThatLiesEndsNoProcessAndHidesNoDrift(t *testing.T) {
	long(t)
	s := newStand(t)
	for _, name := range []string{"web", "after"} {
		s.Deploy(ci, name)
		s.untilAuthorized(name, 1)
	}
	l := startLiar(t)
	s.proxy.Redirect("tcp", l.listener.Addr().String())
	s.proxy.Cut()
	opened, n := s.failOpen(), 0
	before, spent := s.reviews()
	s.Eventually("every lie is told to both", func() error {
		n++
		s.SetEnv(alice, "web", "V", fmt.Sprint(n)) // a record for the webhook to write
		if untold := l.untold(); len(untold) > 0 {
			return fmt.Errorf("%v are not", untold)
		}
		return nil
	})
	s.SetImage(alice, "web", evilImage)
	s.Until("web", "alice's image is drift", func(b *v1alpha1.Baseline) error {
		if !strings.Contains(guarded.Describe(b), "Changed "+guarded.ImagePath+" by alice (Untrusted, WriterStamp)") || guarded.Authorized(b) != 1 {
			return errors.New("it is not")
		}
		return nil
	})
	s.answersFirst("after")
	if n := s.failOpen() - opened; n != 0 {
		t.Errorf("the API server went on without %v answers", n)
	}
	reviews, seconds := s.reviews()
	t.Logf("%v reviews took %v s together", reviews-before, seconds-spent)
	s.unharmed()

	s.proxy.Redirect("unix", s.redis.Socket)
	s.proxy.Cut()
	s.healthy("after")
	s.unharmed()
}

// Whoever may write to Redis may say that CI did it. What is stored with the
// object says otherwise, and nothing that records say moves the authorized state.
func TestForgedRecordsAuthorizeNothing(t *testing.T) {
	s := newStand(t)
	for _, name := range []string{"web", "scaled", "certified", "after"} {
		s.Deploy(ci, name)
		s.untilAuthorized(name, 1)
	}
	forge := func(name string, change func(*specguard.WriteRecord), before string) {
		d := s.Live(name)
		record := specguard.WriteRecord{
			UID: string(d.UID), APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.Name, Name: name,
			Operation: specguard.OperationUpdate, ResourceVersionBefore: before, Generation: d.Generation,
			Identity: specguard.Identity{User: ci}, Time: time.Now(), Authenticated: true,
		}
		change(&record)
		raw, err := json.Marshal(&record)
		s.Must(err)
		s.Must(s.admin.XAdd(s.Ctx(), &redis.XAddArgs{Stream: "plumbline:details", Values: []any{"r", raw}}).Err())
	}
	before := s.Live("web").ResourceVersion
	s.SetImage(alice, "web", evilImage)
	forge("web", func(r *specguard.WriteRecord) { r.HashAfter, r.Fields = s.hashOf("web"), []string{guarded.ImagePath} }, before)
	// With the certificate of the API server the forged record may correct the true one (decision 32 of
	// 0006), so whether the change is masked hangs on which is read first. It is never authorized.
	for name, certified := range map[string]bool{"scaled": false, "certified": true} {
		before := s.Live(name).ResourceVersion
		s.Scale(bob, name, 7)
		forge(name, func(r *specguard.WriteRecord) {
			r.Subresource, r.Replicas, r.Fields, r.Generation, r.Authenticated = "scale", new(int32(7)), []string{"/spec/replicas"}, 0, certified
		}, before)
	}
	// What comes later in the same stream has been read, so the forged ones were.
	s.healthy("after")
	s.UntilIs("web", evil)
	for _, name := range []string{"web", "scaled", "certified"} {
		b, err := s.Baseline(name)
		s.Must(err)
		if guarded.Authorized(b) != 1 {
			t.Errorf("%s: revision %d is authorized; the baseline is %s", name, guarded.Authorized(b), guarded.Describe(b))
		}
	}
	// Two records of one write: the one that is trusted least counts.
	s.UntilIs("scaled", "Drifted: Changed /spec/replicas by bob (Untrusted, Admission)")
}
