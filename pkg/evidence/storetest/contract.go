// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Contract runs what every store must pass; open gives an empty one each time.
func Contract(t *testing.T, open func(*testing.T) evidence.Store) {
	for name, test := range map[string]func(*testing.T, evidence.Store){
		"a created object is read as it was":         testRoundTrip,
		"a name is taken once, by any content":       testTakenOnce,
		"one of many that create a name wins":        testOneWins,
		"an absent record is told from a failure":    testAbsent,
		"names come in the order of the chain":       testOrder,
		"an overlong object is seen as such":         testOverlong,
		"a body may be longer than a record":         testBody,
		"a store that is ready lists no new objects": testReady,
		"a context that ended stops all work":        testEnded,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testRoundTrip(t *testing.T, s evidence.Store) {
	want := []byte("{\"a\":1}\n\x00\xff")
	create(t, s, evidence.Name("chain", 1), want)
	if got := read(t, s, evidence.Name("chain", 1)); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func testTakenOnce(t *testing.T, s evidence.Store) {
	name := evidence.Name("chain", 1)
	create(t, s, name, []byte("first"))
	for _, again := range []string{"first", "second"} {
		if err := s.Create(t.Context(), name, []byte(again)); !errors.Is(err, evidence.ErrExists) {
			t.Errorf("creating %q again: got %v, want ErrExists", again, err)
		}
	}
	if got := read(t, s, name); string(got) != "first" {
		t.Errorf("got %q, want the first", got)
	}
}

func testOneWins(t *testing.T, s evidence.Store) {
	const writers = 8
	name := evidence.Name("chain", 1)
	errs := make([]error, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { errs[i] = s.Create(t.Context(), name, bytes.Repeat([]byte{byte('a' + i)}, 4096)) })
	}
	all.Wait()
	winner := slices.Index(errs, nil)
	if winner < 0 {
		t.Fatalf("nobody won: %v", errs)
	}
	for i, err := range errs {
		if i != winner && !errors.Is(err, evidence.ErrExists) {
			t.Errorf("writer %d: got %v, want ErrExists", i, err)
		}
	}
	if got := read(t, s, name); !bytes.Equal(got, bytes.Repeat([]byte{byte('a' + winner)}, 4096)) {
		t.Errorf("got %.8q…, want the content of the winner %d", got, winner)
	}
}

func testAbsent(t *testing.T, s evidence.Store) {
	create(t, s, evidence.Name("chain", 1), []byte("x"))
	for _, name := range []string{evidence.Name("chain", 2), evidence.Name("other", 1)} {
		if _, err := s.Read(t.Context(), name); !errors.Is(err, evidence.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", name, err)
		}
	}
	if names := list(t, s, "other"); len(names) != 0 {
		t.Errorf("an absent chain has %v", names)
	}
}

func testOrder(t *testing.T, s evidence.Store) {
	var want []string
	for _, sequence := range []int64{10, 2, 1, 9, 100} {
		create(t, s, evidence.Name("b", sequence), []byte("x"))
	}
	for _, sequence := range []int64{1, 2, 9, 10, 100} {
		want = append(want, evidence.Name("b", sequence))
	}
	create(t, s, evidence.Name("a", 3), []byte("x"))
	create(t, s, evidence.Name("bb", 1), []byte("x"))
	if diff := cmp.Diff(want, list(t, s, "b")); diff != "" {
		t.Errorf("one chain (-want +got):\n%s", diff)
	}
	all := slices.Concat([]string{evidence.Name("a", 3)}, want, []string{evidence.Name("bb", 1)})
	if diff := cmp.Diff(all, list(t, s, "")); diff != "" {
		t.Errorf("all chains (-want +got):\n%s", diff)
	}
}

func testOverlong(t *testing.T, s evidence.Store) {
	name := evidence.Name("chain", 1)
	create(t, s, name, make([]byte, evidence.MaxEnvelope+100))
	if got := read(t, s, name); len(got) != evidence.MaxEnvelope+1 {
		t.Errorf("read %d bytes, want %d", len(got), evidence.MaxEnvelope+1)
	}
}

// testBody also shows that bodies are listed after all records of their chain.
func testBody(t *testing.T, s evidence.Store) {
	body := bytes.Repeat([]byte("0123456789abcdef"), evidence.MaxEnvelope)
	name := evidence.BodyName("chain", evidence.Digest(body))
	create(t, s, name, body)
	create(t, s, evidence.Name("chain", math.MaxInt64), []byte("x"))
	if got := read(t, s, name); !bytes.Equal(got, body) {
		t.Errorf("read %d bytes, want the %d of the body", len(got), len(body))
	}
	if diff := cmp.Diff([]string{evidence.Name("chain", math.MaxInt64), name}, list(t, s, "chain")); diff != "" {
		t.Errorf("the chain (-want +got):\n%s", diff)
	}
	long := evidence.BodyName("chain", evidence.Digest(nil))
	create(t, s, long, make([]byte, evidence.MaxBody+100))
	if got := read(t, s, long); len(got) != evidence.MaxBody+1 {
		t.Errorf("read %d bytes of a body that is too long, want %d", len(got), evidence.MaxBody+1)
	}
}

func testReady(t *testing.T, s evidence.Store) {
	for range 2 {
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if names := list(t, s, ""); len(names) != 0 {
		t.Errorf("the store lists %v", names)
	}
}

func testEnded(t *testing.T, s evidence.Store) {
	name := evidence.Name("chain", 1)
	create(t, s, name, []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed *evidence.StoreError
	if err := s.Create(ctx, evidence.Name("chain", 2), nil); !errors.As(err, &failed) {
		t.Errorf("create: got %v, want a StoreError", err)
	}
	if _, err := s.Read(ctx, name); !errors.As(err, &failed) {
		t.Errorf("read: got %v, want a StoreError", err)
	}
	if err := s.Ready(ctx); !errors.As(err, &failed) {
		t.Errorf("ready: got %v, want a StoreError", err)
	}
	for _, err := range s.List(ctx, "") {
		if !errors.As(err, &failed) {
			t.Errorf("list: got %v, want a StoreError", err)
		}
	}
}

func create(t *testing.T, s evidence.Store, name string, data []byte) {
	t.Helper()
	if err := s.Create(t.Context(), name, data); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s evidence.Store, name string) []byte {
	t.Helper()
	data, err := s.Read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func list(t *testing.T, s evidence.Store, chain string) []string {
	t.Helper()
	var names []string
	for name, err := range s.List(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
