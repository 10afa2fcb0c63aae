// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// redisFault is one way in which Redis fails.
type redisFault struct {
	begin, end func(*stand)
	// noWrites and noReads say that the webhook, or the assessor, is to notice.
	noWrites, noReads bool
	// lost says that records are gone which the assessor had read of, and that it
	// is to say so.
	lost bool
}

// redisFaults are those that one stand suffers one after the other.
func redisFaults() map[string]redisFault {
	way := func(f faultproxy.Fault) redisFault {
		return redisFault{
			begin: func(s *stand) {
				s.proxy.Set(f)
				if f.Refuse {
					s.proxy.Cut()
				}
			},
			end:      func(s *stand) { s.proxy.Set(faultproxy.Fault{}) },
			noWrites: true, noReads: true,
		}
	}
	return map[string]redisFault{
		"killed": {
			begin:    func(s *stand) { s.redis.Kill() },
			end:      func(s *stand) { s.startRedis() },
			noWrites: true, noReads: true,
		},
		"unreachable":               way(faultproxy.Fault{Refuse: true}),
		"slow by two seconds":       way(faultproxy.Fault{Delay: 2 * time.Second}),
		"silent":                    way(faultproxy.Fault{Hold: true}),
		"deaf to us: answers lost":  way(faultproxy.Fault{LoseAnswers: true}),
		"cut at every answer":       way(faultproxy.Fault{CutAtAnswer: true}),
		"gone, and we are not told": {begin: func(s *stand) { s.proxy.HalfOpen() }, end: func(*stand) {}},
		"flushed":                   {begin: func(s *stand) { s.do("FLUSHALL") }, end: func(*stand) {}, lost: true},
		"full": {
			begin:    func(s *stand) { s.do("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1") },
			end:      func(s *stand) { s.do("CONFIG", "SET", "maxmemory", "0") },
			noWrites: true,
		},
		"a replica that takes no writes": {
			begin:    func(s *stand) { s.do("REPLICAOF", "127.0.0.1", "1") },
			end:      func(s *stand) { s.do("REPLICAOF", "NO", "ONE") },
			noWrites: true,
		},
		"a key of another type where the stream was": {
			begin:    func(s *stand) { s.do("SET", "plumbline:details", "junk") },
			end:      func(s *stand) { s.do("DEL", "plumbline:details") },
			noWrites: true, noReads: true,
		},
	}
}

// While Redis fails, no review waits for it, drift is found and named by
// what is stored with the object, nothing is authorized or excused for want of a
// record, and the failure is counted. Afterwards all is as before, without a
// restart. Redis is not asked to be told of its own end.
func TestARedisThatFailsCostsNamesAloneAndHealsWithoutARestart(t *testing.T) {
	s := newStand(t)
	n := 0
	for name, fault := range redisFaults() {
		n++
		object := func(what string) string { return fmt.Sprintf("%s-%d", what, n) }
		ok := t.Run(name, func(t *testing.T) {
			rotation.Share(t, 3)
			s := s.in(t)
			for _, what := range []string{"web", "scaled", "deleted", "after"} {
				s.Deploy(ci, object(what))
				s.untilAuthorized(object(what), 1)
			}
			opened := s.failOpen()
			before, spent := s.reviews()
			gaps := s.metric(s.assessor, "plumbline_assessor_admission_record_gaps_total")
			unassessed := s.metric(s.hook.Process, "plumbline_admission_unassessed_total")

			fault.begin(s)
			s.SetImage(alice, object("web"), evilImage)
			for v := range 8 {
				s.SetEnv(ci, object("after"), "V", fmt.Sprint(v))
			}
			s.Scale(bob, object("scaled"), 7)
			s.Must(s.As(ci).Delete(s.Ctx(), s.Named(object("deleted"))))
			s.UntilIs(object("web"), evil)
			s.untilAuthorized(object("after"), 9)
			s.Until(object("scaled"), "the number is drift", func(b *v1alpha1.Baseline) error {
				if b.Status.State != v1alpha1.StateDrifted || !strings.Contains(guarded.Describe(b), "Changed /spec/replicas") || guarded.Authorized(b) != 1 {
					return errors.New("it is not")
				}
				return nil
			})
			if got, want := s.stampOf(object("web")), s.hashOf(object("web")); got != want {
				t.Errorf("stamp %q, the stored object's hash is %q", got, want)
			}
			s.notices(fault, gaps)
			if fault.noWrites {
				s.answersFirst(object("after"))
			}
			if fault.noReads {
				s.UntilIs(object("scaled"), "Drifted: Changed /spec/replicas by ? (Unknown, ManagedFields)")
				s.UntilIs(object("deleted"), "Missing: Removed object by ? (Unknown, None)")
			}

			if n := s.failOpen() - opened; n != 0 {
				t.Errorf("the API server went on without %v answers", n)
			}
			if n := s.metric(s.hook.Process, "plumbline_admission_unassessed_total") - unassessed; n != 0 {
				t.Errorf("%v reviews were not judged", n)
			}
			n, seconds := s.reviews()
			t.Logf("%v reviews took %v s together", n-before, seconds-spent)
			fault.end(s)
			s.healthy(object("after"))
			s.unharmed()
		})
		if !ok {
			return // Redis may still be broken
		}
	}
}

// notices waits until the metrics tell of a fault.
func (s *stand) notices(fault redisFault, gaps float64) {
	s.t.Helper()
	if fault.noWrites {
		s.comes(s.hook.Process, exactly(0), "plumbline_admission_records_redis_up")
	}
	if fault.noReads {
		s.comes(s.assessor, exactly(0), "plumbline_assessor_admission_records_up")
	}
	if fault.lost {
		s.comes(s.assessor, moreThan(gaps), "plumbline_assessor_admission_record_gaps_total")
	}
}
