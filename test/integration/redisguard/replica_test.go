// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redisguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// pair is a primary and its replica, which follows it through a proxy.
type pair struct {
	primary, replica *stand
	between          *faultproxy.Proxy
}

func newPair(t *testing.T) *pair {
	t.Helper()
	address, options := onPort(t)
	p := &pair{primary: newStand(t, options...)}
	var err error
	p.between, err = faultproxy.Start("tcp", address)
	must(t, err)
	t.Cleanup(func() { must(t, p.between.Close()) })
	_, options = onPort(t)
	p.replica = newStand(t, append(options, "--replicaof", strings.Replace(p.between.Address(), ":", " ", 1))...)
	p.primary.put(t, 5)
	p.follows(t, 5)
	return p
}

// follows waits until the replica has a sequence.
func (p *pair) follows(t *testing.T, sequence int64) {
	t.Helper()
	poll.Until(t, patience, "the replica follows", func() error {
		if a := p.replica.ask(t, sequence); !a.Vetoed() {
			return fmt.Errorf("it says %+v", a)
		}
		return nil
	})
}

func TestAReplicaAnswersAndTakesNoCopy(t *testing.T) {
	p := newPair(t)
	refuses(t, "a replica", p.replica.ask(t, 5))
	err := p.replica.Put(t.Context(), name, uid, full(6))
	if failure, ok := errors.AsType[*redisguard.MirrorError](err); !ok || failure.Reason != redisguard.ReasonServerError || !redis.HasErrorPrefix(failure.Err, "READONLY") {
		t.Errorf("putting to a replica says %v", err)
	}
	isUnknown(t, "of what it has not, a replica", p.replica.consult(t, 6), redisguard.ReasonBehind)
}

// The primary dies with copies that it has confirmed and the replica has not.
func TestAReplicaPromotedTooEarlyIsBehind(t *testing.T) {
	p := newPair(t)
	p.between.Set(faultproxy.Fault{Hold: true})
	p.primary.put(t, 8)
	p.primary.redis.Kill()
	must(t, p.replica.admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	a := p.replica.ask(t, 8)
	isUnknown(t, "promoted", a, redisguard.ReasonBehind)
	if a.Sequence != 5 {
		t.Errorf("it is at %d", a.Sequence)
	}
	refuses(t, "asked with the ledger at hand", p.replica.consult(t, 8))
}

// Each of two primaries takes what it is given. Neither grants, and each says
// what the ledger says to whoever asks it with the ledger at hand.
func TestTwoPrimariesGrantNoMoreThanOneLedger(t *testing.T) {
	p := newPair(t)
	p.between.Set(faultproxy.Fault{Hold: true})
	must(t, p.replica.admin.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	first := ledger.Begin(epoch, true)
	s, granted := &first, 0
	for n := range 20 {
		m := []*stand{p.primary, p.replica}[n%2]
		r := request(n, "p", fmt.Sprint("t", n))
		if m.Consult(t.Context(), name, "split", s, r, rules(), epoch).Vetoed() != (granted == 2) {
			t.Fatalf("step %d, with %d granted", n, granted)
		}
		next, verdict := ledger.Reserve(s, r, rules(), epoch)
		if verdict.Granted {
			s, granted = next, granted+1
		}
	}
	if granted != 2 {
		t.Errorf("%d are granted, the limit is 2", granted)
	}
}

func TestInARedisClusterACopyLiesInOneSlot(t *testing.T) {
	address, options := onPort(t)
	// By default the bus has the port above by 10,000, which an outgoing connection may have.
	options = append(options, "--cluster-port", strconv.Itoa(freeport.For(t)))
	s := newStand(t, append(options, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-require-full-coverage", "no")...)
	must(t, s.admin.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	poll.True(t, patience, "the cluster is whole", func() bool {
		return strings.Contains(s.admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{address}, MaxRedirects: -1, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	m := redisguard.New(client, redisguard.Config{Prefix: prefix, Budget: patience})
	slots := map[int64]bool{}
	for _, environment := range []string{name, "staging", "plumbline-cluster"} {
		refuses(t, environment+":", m.Consult(t.Context(), environment, uid, full(5), third(), rules(), epoch))
		slot := func(key string) int64 { return s.admin.ClusterKeySlot(t.Context(), key).Val() }
		key := prefix + ":mirror:{" + environment + "/" + uid + "}"
		if slot(key) != slot(key+":anything") {
			t.Errorf("what lies beside %s is in another slot", key)
		}
		slots[slot(key)] = true
	}
	if len(slots) < 2 {
		t.Error("all ledgers lie in one slot")
	}
}

// What the scripts need, and no more: neither the clock nor anybody else's keys. The
// rights may be a user's own, or a selector of one who has others besides.
func TestTheRightsThatAMirrorNeeds(t *testing.T) {
	needs := []any{"~" + prefix + ":mirror:*", "+eval", "+evalsha", "+eval_ro", "+evalsha_ro", "+hget", "+hmget", "+hset", "+del", "+expire"}
	selector := strings.Trim(fmt.Sprint(needs), "[]")
	for title, rights := range map[string][]any{
		"a user of its own":        needs,
		"a selector beside others": {"~" + prefix + ":*", "+@stream", "+@connection", "(" + selector + ")"},
	} {
		t.Run(title, func(t *testing.T) {
			s := newStand(t)
			must(t, s.admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "mirror", "on", ">secret", "resetchannels", "-@all"}, rights...)...).Err())
			password := filepath.Join(s.directory, "password")
			must(t, os.WriteFile(password, []byte("secret"), 0o600))
			login := details.Config{Address: s.redis.Socket, Username: "mirror", PasswordFile: password, CallBudget: patience}
			m := mirror(t, login, redisguard.Config{Budget: patience})
			refuses(t, "with these rights", m.Consult(t.Context(), name, uid, full(5), third(), rules(), epoch))
			refuses(t, "of a copy it had", m.Consult(t.Context(), name, uid, full(6), third(), rules(), epoch))

			client := details.NewClient(login)
			t.Cleanup(func() { _ = client.Close() })
			must(t, s.admin.Set(t.Context(), prefix+":details", "x", 0).Err())
			for _, script := range []string{
				"return redis.call('TIME')",
				"return redis.call('HGET', '" + prefix + ":details', 'x')",
				"return redis.call('DEL', '" + prefix + ":details')",
				"return redis.call('FLUSHALL')",
			} {
				// 7.0 says it in the first way, later ones in the second.
				err := fmt.Sprint(client.Eval(t.Context(), script, nil).Err())
				if !strings.Contains(err, "The user executing the script can't") && !strings.Contains(err, "ACL failure") {
					t.Errorf("%s is answered with %v", script, err)
				}
			}
		})
	}
}
