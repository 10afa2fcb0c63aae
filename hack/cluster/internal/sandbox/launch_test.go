// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// script plays the first process: for each order that arrives, it sends the
// reports that answer it.
type script func(order) []report

// pair connects a launcher to a played first process, which goes away, as a dead
// one does, when the script answers with nothing.
func pair(t *testing.T, play script) *Launcher {
	t.Helper()
	ordersRead, ordersWrite := io.Pipe()
	reportsRead, reportsWrite := io.Pipe()
	launcher := &Launcher{
		orders: ordersWrite, replies: make(chan report, 1), exits: make(chan Exit, 16), ended: make(chan struct{}),
	}
	go launcher.listen(reportsRead)
	go func() {
		defer reportsWrite.Close()
		decoder, encoder := json.NewDecoder(ordersRead), json.NewEncoder(reportsWrite)
		for {
			var o order
			if decoder.Decode(&o) != nil {
				return
			}
			answers := play(o)
			for _, answer := range answers {
				if encoder.Encode(answer) != nil {
					return
				}
			}
			if len(answers) == 0 {
				_ = ordersRead.Close()
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = ordersWrite.Close()
		<-launcher.ended
	})
	return launcher
}

func TestLauncherOrders(t *testing.T) {
	cases := map[string]struct {
		play script
		want string // in the error; "" means success
	}{
		"an order that is carried out": {func(order) []report { return []report{{Done: true}} }, ""},
		"an order that fails":          {func(order) []report { return []report{{Error: "no such program"}} }, "no such program"},
		"a first process that dies":    {func(order) []report { return nil }, "ended unexpectedly"},
		"an exit that comes in between": {
			func(order) []report { return []report{{Exited: "etcd", Status: "exited with status 1"}, {Done: true}} }, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := pair(t, tc.play).Start(t.Context(), plan.Process{Name: "x"})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Start = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLauncherSendsWhatItIsTold(t *testing.T) {
	orders := make(chan order, 2)
	launcher := pair(t, func(o order) []report {
		orders <- o
		return []report{{Done: true}}
	})
	process := plan.Process{Name: "etcd", Path: "/etcd", Args: []string{"--x"}, Env: []string{"A=b"}, Log: "/log"}
	setup := plan.Cluster{}.Sandbox()
	if err := errors.Join(launcher.SetUp(t.Context(), setup), launcher.Start(t.Context(), process)); err != nil {
		t.Fatal(err)
	}
	first, second := <-orders, <-orders
	if first.Setup == nil || first.Setup.Address != setup.Address || len(first.Setup.Binds) != len(setup.Binds) {
		t.Errorf("set-up arrived as %+v", first)
	}
	if diff := cmp.Diff(order{Start: &process}, second); diff != "" {
		t.Errorf("start (-want +got):\n%s", diff)
	}
}

func TestLauncherDeliversExits(t *testing.T) {
	launcher := pair(t, func(order) []report {
		reports := []report{{Done: true}}
		for range 40 { // more than anybody keeps: none may block the replies
			reports = append(reports, report{Exited: "kubelet", Status: "killed by killed"})
		}
		return append(reports, report{Exited: "last", Status: "x"})
	})
	for range 3 {
		if err := launcher.Start(t.Context(), plan.Process{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(Exit{Name: "kubelet", Status: "killed by killed"}, <-launcher.Exits()); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
}

func TestLauncherStopsWaitingWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	launcher := pair(t, func(order) []report {
		cancel()
		<-release
		return nil
	})
	if err := launcher.Start(ctx, plan.Process{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v, want context.Canceled", err)
	}
	close(release)
}
