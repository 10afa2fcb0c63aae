// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

var errReviewFailed = errors.New("the API server cannot be asked")

// hearerWith is a caller with rights: to all kinds in a namespace, or in all under the empty name.
type hearerWith struct {
	rights map[string]bool
	away   bool
}

func (h *hearerWith) Renew(context.Context) error { return h.error() }
func (h *hearerWith) Until() time.Time            { return time.Time{} }

func (h *hearerWith) error() error {
	if h.away {
		return errReviewFailed
	}
	return nil
}

func (h *hearerWith) MayWatch(_ context.Context, _ client.ObjectList, namespace string) error {
	if h.away || h.rights[""] || h.rights[namespace] {
		return h.error()
	}
	return mayNot("watch", "all")
}

func (h *hearerWith) FindNamespace(context.Context, client.ObjectList) (string, error) {
	for _, namespace := range []string{"bank", "shop"} {
		if h.rights[namespace] {
			return namespace, h.error()
		}
	}
	return "", h.error()
}

// sharedBy is a cluster whose only caller is a hearer.
type sharedBy struct {
	*inMemory
	hearer *hearerWith
}

func (sharedBy) Follow(context.Context, client.ObjectList, func(client.Object), func(client.Object)) error {
	return nil
}

func (s sharedBy) Hearer(context.Context) (Hearer, error) { return s.hearer, nil }

// plansIn gives events of plans in two namespaces, each with a number.
type plansIn struct {
	*feed
	told int
}

func (p *plansIn) tell(namespace string) string {
	p.told++
	name := strconv.Itoa(p.told)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ring.Append(events.Entry{ID: events.ID{Second: int64(p.told)}, Kind: "RemediationPlan", Event: wire.Event{Type: wire.EventPlanCreated, Namespace: namespace, Name: name}})
	p.wake()
	return name
}

// eventOf reads the event of a frame.
func eventOf(t *testing.T, f events.Frame) (e wire.Event) {
	t.Helper()
	if err := json.Unmarshal(f.Body, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// step is one of the world around a stream.
type step struct{ does, namespace string }

// play has a stream hear, and returns what is wrong with it: it hears each event that its caller may watch once and in order, and
// no other one.
func play(t *testing.T, base *inMemory, of string, steps []step) string {
	t.Helper()
	hearer := &hearerWith{rights: map[string]bool{"shop": true}}
	plans := &plansIn{feed: newFeed(base, slog.New(slog.DiscardHandler), "")}
	h, err := admit(t.Context(), plans.feed, sharedBy{base, hearer}, of)
	if err != nil {
		return err.Error()
	}
	defer h.leave()
	at, _ := h.subscribe(nil)
	var want, heard []string
	hear := func() (goesOn bool) {
		for {
			news, _, failure := h.hear(t.Context(), &at)
			for i := range news {
				if news[i].Type == wire.EventPlanCreated {
					heard = append(heard, eventOf(t, news[i]).Name)
				}
			}
			if len(news) == 0 || failure != nil {
				return failure == nil
			}
		}
	}
	may := func(namespace string) bool { return hearer.rights[""] || hearer.rights[namespace] }
	for _, s := range steps {
		switch s.does {
		case "tell":
			if name := plans.tell(s.namespace); may(s.namespace) && (of == "" || of == s.namespace) {
				want = append(want, name)
			}
		case "change":
			// The stream hears all from before, and has asked anew half a minute later.
			hearer.away = false
			<-time.After(30 * time.Second)
			hear()
			hearer.rights[s.namespace] = !hearer.rights[s.namespace]
			<-time.After(30 * time.Second)
			there := may("shop") || of == "" && may("bank")
			if hear() != there {
				return fmt.Sprintf("with the rights %v the stream goes on: %v", hearer.rights, !there)
			} else if !there {
				return cmp.Diff(want, heard)
			}
		case "away":
			hearer.away = !hearer.away
		}
		if !hear() {
			return "a stream with a right has ended"
		}
	}
	hearer.away = false
	<-time.After(30 * time.Second)
	hear()
	return cmp.Diff(want, heard)
}

func TestAFilteredStreamHearsWhatANaiveOneDoes(t *testing.T) {
	base := newCluster(t, interceptor.Funcs{})
	rapid.Check(t, func(rt *rapid.T) {
		of := rapid.SampledFrom([]string{"", "shop"}).Draw(rt, "namespace")
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			does := rapid.SampledFrom([]string{"tell", "tell", "tell", "change", "away"}).Draw(rt, "does")
			if does == "change" {
				return step{does, rapid.SampledFrom([]string{"shop", "bank", ""}).Draw(rt, "namespace")}
			}
			return step{does, rapid.SampledFrom([]string{"shop", "bank"}).Draw(rt, "namespace")}
		}), 1, 30).Draw(rt, "steps")
		problem := ""
		synctest.Test(t, func(t *testing.T) { problem = play(t, base, of, steps) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func TestAFilteredStreamThatWasLappedIsToldSoOnce(t *testing.T) {
	base := newCluster(t, interceptor.Funcs{})
	f := newFeed(base, slog.New(slog.DiscardHandler), "")
	f.ring = events.NewRing(2)
	plans := &plansIn{feed: f}
	h, err := admit(t.Context(), f, sharedBy{base, &hearerWith{rights: map[string]bool{"": true}}}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave()
	at, _ := h.subscribe(nil)
	for range 3 {
		plans.tell("shop")
	}
	var heard []string
	for range 2 {
		news, _, failure := h.hear(t.Context(), &at)
		for i := range news {
			e := eventOf(t, news[i])
			heard = append(heard, fmt.Sprint(e.Type, " ", e.Namespace, e.Name, failure))
		}
		plans.tell("shop")
	}
	if diff := cmp.Diff([]string{"resync shop<nil>", "plan.created shop4<nil>"}, heard); diff != "" {
		t.Errorf("(-want +heard):\n%s", diff)
	}
}
