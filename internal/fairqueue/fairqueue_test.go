// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

func newTestQueue(t interface{ Cleanup(func()) }) *Queue[types.NamespacedName] {
	q := New("test", workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](5*time.Millisecond, time.Minute),
		func(key types.NamespacedName) string { return key.Namespace })
	t.Cleanup(q.ShutDown)
	return q
}

// keyAt reads "namespace/name".
func keyAt(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func addLater(q *Queue[types.NamespacedName], key types.NamespacedName) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, key)
}

func TestNamespacesAreServedInTurn(t *testing.T) {
	tests := map[string]struct {
		// adds are keys, those for later with a mark. "get" takes a key and "done" ends
		// the work on it.
		adds, want string
	}{
		"one namespace keeps its order":                       {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"a later namespace waits for one object, not for all": {"a/1 a/2 a/3 b/1", "a/1 b/1 a/2 a/3"},
		"each namespace has its turn":                         {"a/1 a/2 b/1 b/2 c/1", "a/1 b/1 c/1 a/2 b/2"},
		"an object that is added twice comes once":            {"a/1 a/1 b/1 a/1", "a/1 b/1"},
		"what is for later comes after all news":              {"a/1~ a/2~ b/1~ c/1 a/3", "c/1 a/3 a/1 b/1 a/2"},
		"news of what is for later overtakes":                 {"a/1~ a/2~ b/1 a/2", "b/1 a/2 a/1"},
		"what has news is not put off":                        {"a/1 a/1~ a/2~ b/1 ", "a/1 b/1 a/2"},
		"what was overtaken is put off again":                 {"a/1~ a/2~ a/1 get done a/1~ c/1", "a/1 c/1 a/1 a/2"},
		"what comes during the work is handed out after it":   {"a/1 get a/1 b/1 done", "a/1 b/1 a/1"},
		"news during the work is not put off":                 {"a/1 get a/1 a/1~ done a/2~ b/1~", "a/1 a/1 a/2 b/1"},
		"what is put off during the work comes later":         {"a/1 get a/1~ done b/1", "a/1 b/1 a/1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := newTestQueue(t)
			var got []string
			var held types.NamespacedName
			get := func() {
				key, priority, _ := q.GetWithPriority()
				if priority != 0 {
					t.Errorf("priority %d", priority)
				}
				held, got = key, append(got, key.Namespace+"/"+key.Name)
			}
			for word := range strings.FieldsSeq(tc.adds) {
				switch text, later := strings.CutSuffix(word, "~"); {
				case word == "get":
					get()
				case word == "done":
					q.Done(held)
				case later:
					addLater(q, keyAt(text))
				default:
					q.Add(keyAt(text))
				}
			}
			for q.Len() > 0 {
				get()
				q.Done(held)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("order (-want +got)\n%s", diff)
			}
			if len(q.turns.asked) != 0 || len(q.turns.waiting) != 0 || q.turns.overtaken != 0 || len(q.turns.news.keys)+len(q.turns.later.keys) != 0 {
				t.Errorf("something is left: %+v", q.turns)
			}
		})
	}
}

// A tenant who writes ten thousand objects.
func TestAFloodOfOneNamespaceDelaysAnotherByOneObject(t *testing.T) {
	q := newTestQueue(t)
	for i := range 10_000 {
		q.Add(types.NamespacedName{Namespace: "hostile", Name: fmt.Sprint(i)})
	}
	q.Add(keyAt("shop/web"))
	for range 2 {
		if key, _ := q.Get(); key == keyAt("shop/web") {
			return
		}
	}
	t.Error("two objects came before that of the other tenant")
}

func TestWhatIsTriedAgainIsHandedOut(t *testing.T) {
	q := newTestQueue(t)
	for name, add := range map[string]func(types.NamespacedName){
		"at once": q.Add,
		"after": func(k types.NamespacedName) {
			q.AddWithOpts(priorityqueue.AddOpts{After: time.Millisecond, Priority: new(0)}, k)
		},
		"after later": func(k types.NamespacedName) {
			q.AddWithOpts(priorityqueue.AddOpts{After: time.Millisecond, Priority: new(handler.LowPriority)}, k)
		},
		"by its rate": func(k types.NamespacedName) { q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, k) },
	} {
		add(keyAt("a/" + name))
		key, _, shutdown := q.GetWithPriority()
		if key != keyAt("a/"+name) || shutdown {
			t.Errorf("%s: got %v, shut down %t", name, key, shutdown)
		}
		q.Done(key)
	}
	if got := q.NumRequeues(keyAt("a/by its rate")); got != 1 {
		t.Errorf("%d tries are remembered, want 1", got)
	}
}

// TestTurnsAreFairWhateverIsAdded holds the queue against what it promises: no key is lost
// or comes twice, news of a namespace keep their order, nothing for later comes before news,
// and a namespace with news waits for at most one object of each other namespace.
func TestTurnsAreFairWhateverIsAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newTestQueue(t)
		var news, later []types.NamespacedName
		waited := map[string]map[string]int{} // of a namespace with news, for each other
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			key := keyAt(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace") + "/" + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "name"))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				q.Add(key)
				if at := slices.Index(later, key); at >= 0 {
					later = slices.Delete(later, at, at+1)
				}
				if !slices.Contains(news, key) {
					news = append(news, key)
				}
			case 1:
				addLater(q, key)
				if !slices.Contains(news, key) && !slices.Contains(later, key) {
					later = append(later, key)
				}
			default:
				if q.Len() != len(news)+len(later) {
					t.Fatalf("%d keys in the queue, want %d", q.Len(), len(news)+len(later))
				}
				if q.Len() == 0 {
					continue
				}
				got, _ := q.Get()
				q.Done(got)
				from := &news
				if len(news) == 0 {
					from = &later
				}
				at := slices.Index(*from, got)
				sameNamespace := func(k types.NamespacedName) bool { return k.Namespace == got.Namespace }
				if at < 0 || from == &news && slices.ContainsFunc(news[:at], sameNamespace) {
					t.Fatalf("got %v of news %v and later %v", got, news, later)
				}
				*from = slices.Delete(*from, at, at+1)
				delete(waited, got.Namespace)
				for _, other := range []string{"a", "b", "c"} {
					if other == got.Namespace || !slices.ContainsFunc(news, func(k types.NamespacedName) bool { return k.Namespace == other }) {
						continue
					}
					if waited[other] == nil {
						waited[other] = map[string]int{}
					}
					if waited[other][got.Namespace]++; waited[other][got.Namespace] > 1 {
						t.Fatalf("namespace %s waited for two objects of %s", other, got.Namespace)
					}
				}
			}
		}
	})
}
