// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

var seeds = flag.Int("sim.seeds", 50, "how many seeds are tried")

// everything that can happen to a message.
var rough = schedule.Chances{Lost: 30, Unanswered: 30, Late: 40, Doubled: 40, Busy: 20, Crash: 20, Sleep: 20}

func newServer() *apiserver.Server {
	server := apiserver.New(time.Now, apiserver.Builtin()...)
	for _, o := range []apiserver.Object{
		{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "shop"}},
	} {
		if _, err := server.Apply("", "v1", "namespaces", "", o); err != nil {
			panic(err)
		}
	}
	counter := apiserver.Object{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "counter"}, "data": map[string]any{"log": ""}}
	if _, err := server.Apply("", "v1", "configmaps", "shop", counter); err != nil {
		panic(err)
	}
	return server
}

func newClient(l *schedule.Life, server *apiserver.Server) (client.Client, error) {
	config := &rest.Config{Host: "http://sim", QPS: -1, Transport: l.Transport(server, "user", schedule.Wire{})}
	config.ContentType = "application/json"
	return client.New(config, client.Options{Scheme: clientgoscheme.Scheme, Mapper: server.Mapper()})
}

var counterKey = types.NamespacedName{Namespace: "shop", Name: "counter"}

// appends its letter to a log until it is there, each time with the
// resourceVersion it read; who sees its letter does not add it again.
func appender(server *apiserver.Server, letter string) func(*schedule.Life) {
	return func(l *schedule.Life) {
		c, err := newClient(l, server)
		if err != nil {
			panic(err)
		}
		for {
			var m corev1.ConfigMap
			if err := c.Get(l.Context(), counterKey, &m); err != nil {
				continue
			}
			if strings.Contains(m.Data["log"], letter) {
				return
			}
			m.Data["log"] += letter
			_ = c.Update(l.Context(), &m) // read again, whatever came of it
		}
	}
}

func run(t *testing.T, seed uint64, server *apiserver.Server, actors map[string]func(*schedule.Life)) (trace []string, digest string, virtual time.Duration) {
	t.Helper()
	s := schedule.New(seed)
	begun := time.Now()
	names := make([]string, 0, len(actors))
	for name := range actors {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s.Spawn(name, actors[name])
	}
	s.Disturb(rough)
	s.Run(60, nil)
	s.Disturb(schedule.Chances{})
	s.Run(1000, nil)
	virtual = time.Since(begun)
	s.Stop()
	return s.Trace(), s.Digest(), virtual
}

func logOf(t *testing.T, server *apiserver.Server) string {
	t.Helper()
	c, err := client.New(&rest.Config{Host: "http://sim", Transport: server.Transport("test", "test"), ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		client.Options{Scheme: clientgoscheme.Scheme, Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	var m corev1.ConfigMap
	if err := c.Get(context.Background(), counterKey, &m); err != nil {
		t.Fatal(err)
	}
	return m.Data["log"]
}

func TestEverybodyEndsAndNobodyIsOverwritten(t *testing.T) {
	for seed := range uint64(*seeds) {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			trace, _, _ := run(t, seed, server, map[string]func(*schedule.Life){
				"a": appender(server, "a"), "b": appender(server, "b"), "c": appender(server, "c"),
			})
			got := strings.Split(logOf(t, server), "")
			slices.Sort(got)
			if strings.Join(got, "") != "abc" {
				t.Errorf("seed %d: the log is %q:\n%s", seed, got, strings.Join(trace, "\n"))
			}
		})
	}
}

func TestASeedIsAlwaysTheSameRun(t *testing.T) {
	digests := map[string]bool{}
	for seed := range uint64(10) {
		var digest string
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				_, got, _ := run(t, seed, server, map[string]func(*schedule.Life){"a": appender(server, "a"), "b": appender(server, "b")})
				if digest != "" && got != digest {
					t.Errorf("seed %d: another run", seed)
				}
				digest = got
			})
		}
		digests[digest] = true
	}
	if len(digests) < 5 {
		t.Errorf("ten seeds are only %d different runs", len(digests))
	}
}

// Every fate has to happen, and to look as it is meant to.
func TestFates(t *testing.T) {
	all := schedule.Chances{Lost: 1000}
	tests := map[string]struct {
		chances schedule.Chances
		want    string // of the first write
		stored  string // at the end
	}{
		"nothing happens to it":     {schedule.Chances{}, "<nil>", "x"},
		"it is lost":                {all, "timeout", ""},
		"its answer is lost":        {schedule.Chances{Unanswered: 1000}, "unknown", "x"},
		"it is late":                {schedule.Chances{Late: 1000}, "timeout", "x"},
		"it is doubled":             {schedule.Chances{Doubled: 1000}, "<nil>", "x"},
		"it is refused":             {schedule.Chances{Busy: 1000}, "unavailable", ""},
		"its sender sleeps over it": {schedule.Chances{Sleep: 1000}, "<nil>", "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				s := schedule.New(1)
				var got string
				s.Spawn("writer", func(l *schedule.Life) {
					c, err := newClient(l, server)
					if err != nil {
						panic(err)
					}
					m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "counter"}, Data: map[string]string{"log": "x"}}
					got = told(c.Update(l.Context(), m))
				})
				s.Disturb(test.chances)
				s.Run(1, nil)
				s.Disturb(schedule.Chances{})
				s.Run(100, nil)
				s.Stop()
				if got != test.want || logOf(t, server) != test.stored {
					t.Errorf("it heard %q and stored %q, want %q and %q; %v", got, logOf(t, server), test.want, test.stored, s.Trace())
				}
			})
		})
	}
}

// A request that was refused arrives once more only where that is asked for: then
// it may find that nothing refuses it any more.
func TestWhatWasRefusedIsRepeatedOnlyWhenAskedFor(t *testing.T) {
	for repeated, want := range map[bool]string{false: "", true: "x"} {
		t.Run(fmt.Sprintf("repeated %v", repeated), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				var allowed atomic.Bool
				server.Authorize(func(a apiserver.Attributes) bool { return a.User != "user" || allowed.Load() })
				s := schedule.New(1)
				var got error
				s.Spawn("writer", func(l *schedule.Life) {
					c, err := newClient(l, server)
					if err != nil {
						panic(err)
					}
					m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "counter"}, Data: map[string]string{"log": "x"}}
					got = c.Update(l.Context(), m)
					allowed.Store(true)
				})
				s.Disturb(schedule.Chances{Doubled: 1000, Refused: repeated})
				s.Run(1, nil)
				s.Run(100, nil)
				s.Stop()
				if !apierrors.IsForbidden(got) || logOf(t, server) != want {
					t.Errorf("it heard %v and stored %q, want a refusal and %q; %v", got, logOf(t, server), want, s.Trace())
				}
			})
		})
	}
}

func told(err error) string {
	var network interface{ Timeout() bool }
	var status interface{ Status() metav1.Status }
	switch {
	case err == nil:
		return "<nil>"
	case errors.As(err, &status) && status.Status().Code == http.StatusServiceUnavailable:
		return "unavailable"
	case errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError:
		return "unknown"
	case strings.Contains(err.Error(), "i/o timeout"):
		return "timeout"
	case errors.As(err, &network) && network.Timeout():
		return "unknown"
	}
	return err.Error()
}

func TestWhoDiesBeginsAgainWithAnEmptyMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s := schedule.New(7)
		lives := 0
		s.Spawn("writer", func(l *schedule.Life) {
			lives++
			ended := false
			defer func() {
				if !ended && lives == 2 {
					t.Error("the second life died too")
				}
			}()
			c, err := newClient(l, server)
			if err != nil {
				panic(err)
			}
			var m corev1.ConfigMap
			if err := c.Get(l.Context(), counterKey, &m); err != nil {
				t.Error(err)
			}
			ended = true
		})
		s.Disturb(schedule.Chances{Crash: 1000})
		s.Run(1, nil)
		s.Disturb(schedule.Chances{})
		s.Run(100, nil)
		s.Stop()
		if lives != 2 {
			t.Errorf("it had %d lives, want 2; %v", lives, s.Trace())
		}
	})
}

// A client's own time-out is over in virtual time, and its request is not sent
// after that.
func TestTimePassesOnlyVirtually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := schedule.New(3)
		var took time.Duration
		var failed error
		s.Spawn("sleeper", func(l *schedule.Life) {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(l.Context(), 50*time.Millisecond)
			defer cancel()
			_, failed = schedule.Call(ctx, l, schedule.Message{What: "ask", Writes: true}, func() (int, error) { return 1, nil })
			took = time.Since(begun)
		})
		s.Disturb(schedule.Chances{Sleep: 1000})
		s.Run(1, nil)
		s.Run(10, nil)
		s.Stop()
		if took != 50*time.Millisecond || !errors.Is(failed, context.DeadlineExceeded) {
			t.Errorf("it took %s and ended with %v", took, failed)
		}
	})
}
