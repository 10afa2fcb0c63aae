// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redisguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const masterName = "plumbline"

// startSentinel starts a real Sentinel that decides alone, and gives its address. An empty
// password means that the Sentinel requires none.
func startSentinel(t *testing.T, directory, primary, password string) string {
	t.Helper()
	address := freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	file := filepath.Join(directory, "sentinel.conf")
	must(t, os.WriteFile(file, []byte(strings.Join([]string{
		"requirepass " + strconv.Quote(password), "port " + port, "bind 127.0.0.1", "dir " + directory,
		"sentinel monitor " + masterName + " " + strings.Replace(primary, ":", " ", 1) + " 1",
		"sentinel down-after-milliseconds " + masterName + " 300",
		"sentinel failover-timeout " + masterName + " 2000", "",
	}, "\n")), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sentinel, err := server.StartRedisWith(ctx, redis.Options{Addr: address, Password: password, Protocol: 2, DisableIdentity: true}, file, "--sentinel")
	must(t, err)
	t.Cleanup(sentinel.Kill)
	return address
}

// knows waits until the Sentinel has found the replica of its primary.
func knows(t *testing.T, sentinel string) {
	t.Helper()
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	poll.Until(t, 2*patience, "the Sentinel finds the replica", func() error {
		replicas, err := client.Replicas(t.Context(), masterName).Result()
		if err == nil && (len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok") {
			err = fmt.Errorf("it knows %v", replicas)
		}
		return err
	})
}

// writesDetails puts a record into the stream and reads it.
func writesDetails(t *testing.T, where details.Config) {
	t.Helper()
	client := details.NewClient(where)
	defer func() { _ = client.Close() }()
	writer := details.NewWriter(client, prefix, 1, nil)
	writer.Enqueue(specguard.WriteRecord{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, writer.Run(ended)) // it writes what is left
	if n, err := client.XLen(t.Context(), prefix+":details").Result(); err != nil || n == 0 {
		t.Errorf("the stream has %d records (%v)", n, err)
	}
	if batch, err := details.NewReader(client, prefix).Next(t.Context(), "", 1, 0); err != nil || len(batch.Entries)+batch.Malformed == 0 {
		t.Errorf("reading the stream gives %+v, %v", batch, err)
	}
}

// One of the addresses is that of a Sentinel that is away.
func TestTheMirrorFollowsAFailoverOfSentinel(t *testing.T) {
	address, options := onPort(t)
	primary := newStand(t, options...)
	_, options = onPort(t)
	replica := newStand(t, append(options, "--replicaof", strings.Replace(address, ":", " ", 1))...)
	sentinel := startSentinel(t, primary.directory, address, "")
	where := details.Config{Mode: details.Sentinel, Address: freeport.Address(t) + "," + sentinel, MasterName: masterName, CallBudget: patience}
	m := mirror(t, where, redisguard.Config{Budget: patience, Rest: 100 * time.Millisecond})
	must(t, m.Put(t.Context(), name, uid, full(5)))
	refuses(t, "before the failover", m.Ask(t.Context(), name, uid, 5, third(), rules(), epoch))
	(&pair{primary: primary, replica: replica}).follows(t, 5)
	knows(t, sentinel)

	primary.redis.Kill()
	poll.Until(t, 2*patience, "the mirror puts to the new primary", func() error {
		return m.Put(t.Context(), name, uid, full(6))
	})
	refuses(t, "after the failover", m.Ask(t.Context(), name, uid, 6, third(), rules(), epoch))
	refuses(t, "the replica, now the primary,", replica.ask(t, 6))
	writesDetails(t, where)
}

func TestTheMirrorGivesSentinelsTheirPassword(t *testing.T) {
	address, options := onPort(t)
	primary := newStand(t, options...)
	sentinel := startSentinel(t, primary.directory, address, "sesame")
	password := filepath.Join(primary.directory, "sentinel-password")
	must(t, os.WriteFile(password, []byte("wrong"), 0o600))
	where := details.Config{Mode: details.Sentinel, Address: sentinel, MasterName: masterName, SentinelPasswordFile: password, CallBudget: patience}
	m := mirror(t, where, redisguard.Config{Budget: patience, Rest: 100 * time.Millisecond})
	if err := m.Put(t.Context(), name, uid, full(5)); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with a wrong password, a write ends with %v", err)
	}
	must(t, os.WriteFile(password, []byte("sesame\n"), 0o600))
	poll.Until(t, patience, "the mirror reads the new password", func() error {
		return m.Put(t.Context(), name, uid, full(5))
	})
	refuses(t, "with the password", m.Ask(t.Context(), name, uid, 5, third(), rules(), epoch))
	writesDetails(t, where)
}

// newCluster is a cluster of three servers, each with a third of the slots, with the
// user that the installation guide describes.
func newCluster(t *testing.T, rights ...any) (addresses []string, stands []*stand) {
	t.Helper()
	for n := range 3 {
		address, options := onPort(t)
		bus := strconv.Itoa(freeport.For(t))
		s := newStand(t, append(options, "--cluster-port", bus, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")...)
		must(t, s.admin.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", n*16384/3, (n+1)*16384/3-1).Err())
		must(t, s.admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "plumbline", "on", ">secret"}, rights...)...).Err())
		if n > 0 {
			_, port, err := net.SplitHostPort(address)
			must(t, err)
			must(t, stands[0].admin.Do(t.Context(), "CLUSTER", "MEET", "127.0.0.1", port, bus).Err())
		}
		addresses, stands = append(addresses, address), append(stands, s)
	}
	for _, s := range stands {
		poll.Until(t, patience, "the cluster is whole", func() error {
			info := s.admin.ClusterInfo(t.Context()).Val()
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return errors.New(info)
			}
			return nil
		})
	}
	return addresses, stands
}

func TestTheMirrorWorksInAClusterOfThree(t *testing.T) {
	mirrorRights := "(~" + prefix + ":mirror:* -@all +eval +evalsha +eval_ro +evalsha_ro +hget +hmget +hset +del +expire)"
	addresses, stands := newCluster(t, "~"+prefix+":*", "resetchannels", "-@all", "+@stream", "+@connection", "+time", "-@admin", "-@dangerous", "+cluster|slots", mirrorRights)
	password := filepath.Join(stands[0].directory, "password")
	must(t, os.WriteFile(password, []byte("secret"), 0o600))
	// The others come from the first that answers.
	where := details.Config{Mode: details.Cluster, Address: freeport.Address(t) + "," + addresses[0], Username: "plumbline", PasswordFile: password, CallBudget: patience}
	m := mirror(t, where, redisguard.Config{Budget: patience})
	for n := range 30 {
		environment := fmt.Sprint("environment-", n)
		refuses(t, environment+":", m.Consult(t.Context(), environment, uid, full(5), third(), rules(), epoch))
		refuses(t, "once more "+environment+":", m.Ask(t.Context(), environment, uid, 5, third(), rules(), epoch))
	}
	for n, s := range stands {
		if keys := s.admin.DBSize(t.Context()).Val(); keys == 0 || keys == 30 {
			t.Errorf("server %d has %d of the 30 copies", n, keys)
		}
	}
	writesDetails(t, where)
}
