// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

var (
	web    = types.NamespacedName{Namespace: "shop", Name: "web"}
	autumn = types.NamespacedName{Namespace: "shop", Name: "autumn"}
)

// fixedEndpoints are one address for each variation and for the Service, or an error.
type fixedEndpoints struct{ err error }

func (f fixedEndpoints) FindArms(_ context.Context, split traffic.Split, _ uint16) (map[string][]netip.AddrPort, error) {
	arms := map[string][]netip.AddrPort{}
	for _, share := range split.Shares {
		arms[share.Variation] = []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:80")}
	}
	return arms, f.err
}

func (f fixedEndpoints) FindAddresses(context.Context, types.NamespacedName, uint16) ([]netip.AddrPort, error) {
	return []netip.AddrPort{netip.MustParseAddrPort("10.1.0.9:80")}, f.err
}

func configOf(change func(*Config)) Config {
	c := Config{
		Served: []traefik.Served{{Service: web, Port: 80}}, Endpoints: fixedEndpoints{}, Programs: []Program{{Name: "edge"}},
		Token: "a-token", Settle: time.Minute, Client: http.DefaultClient, Every: time.Second, Now: time.Now,
	}
	if change != nil {
		change(&c)
	}
	return c
}

// openProvider returns a provider that has a split in force.
func openProvider() *Provider {
	p := New(configOf(nil))
	p.RestoreSplit(autumn, splitOf(7))
	p.Open()
	return p
}

func splitOf(sequence uint64) traffic.Split {
	split := routertest.Split(sequence, 1_000)
	split.Key = traffic.Key{}
	return split
}

// startReplica serves a port. leading is nil for a replica that follows.
func startReplica(t *testing.T, others []string, leading *Leading) (*Port, string) {
	t.Helper()
	port := &Port{Others: func(context.Context) ([]string, error) {
		if slices.Contains(others, unknown) {
			return nil, errors.New("unsynced")
		}
		return others, nil
	}, Client: http.DefaultClient}
	port.setLeading(leading)
	server := httptest.NewServer(port.Routes())
	t.Cleanup(server.Close)
	return port, server.URL
}

// askPort asks as a Traefik does.
func askPort(t *testing.T, url, name, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+Prefix+name, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// unknown is an address that has the source of addresses fail.
const unknown = "unknown"

// leadingReplica is a replica that leads, and has the TrafficRouter edge.
func leadingReplica(lost error) *Leading {
	edge := openProvider()
	return &Leading{
		Find: func(name string) *Provider {
			if name == "edge" {
				return edge
			}
			return nil
		},
		Holds: func(context.Context) error { return lost },
	}
}

func TestEachReplicaAnswersAsTheOneThatLeads(t *testing.T) {
	_, follower := startReplica(t, nil, nil)
	_, leader := startReplica(t, nil, leadingReplica(nil))
	_, former := startReplica(t, nil, leadingReplica(errFollows))
	const silent, marker = "http://127.0.0.1:1", "plb_shop_web_80__7"
	for name, tc := range map[string]struct {
		others  []string
		leading *Leading
		name    string
		token   string
		status  int
		body    string
	}{
		"the leader":                           {nil, leadingReplica(nil), "edge", "a-token", http.StatusOK, marker},
		"the leader without the token":         {nil, leadingReplica(nil), "edge", "guess", http.StatusUnauthorized, ""},
		"the leader for another name":          {nil, leadingReplica(nil), "other", "a-token", http.StatusNotFound, ""},
		"a leader that may have lost":          {[]string{leader}, leadingReplica(errFollows), "edge", "a-token", http.StatusServiceUnavailable, "keep the configuration"},
		"a follower":                           {[]string{leader}, nil, "edge", "a-token", http.StatusOK, marker},
		"a follower with silent replicas":      {[]string{silent, follower, former, leader}, nil, "edge", "a-token", http.StatusOK, marker},
		"a follower without the token":         {[]string{leader}, nil, "edge", "guess", http.StatusUnauthorized, ""},
		"a follower for another name":          {[]string{leader}, nil, "other", "a-token", http.StatusNotFound, ""},
		"a follower without a leader":          {[]string{follower, former}, nil, "edge", "a-token", http.StatusServiceUnavailable, "keep the configuration"},
		"a follower alone":                     {nil, nil, "edge", "a-token", http.StatusServiceUnavailable, "keep the configuration"},
		"a follower that knows no replica yet": {[]string{unknown}, nil, "edge", "a-token", http.StatusServiceUnavailable, "unsynced"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := startReplica(t, tc.others, tc.leading)
			status, body := askPort(t, url, tc.name, tc.token)
			if status != tc.status || !strings.Contains(body, tc.body) {
				t.Errorf("answered is %d: %s", status, body)
			}
			if status != http.StatusOK && strings.Contains(body, "services") {
				t.Errorf("a refusal has a configuration: %s", body)
			}
		})
	}
}

// A replica that leads no more has no configuration.
func TestTheEndOfLeadingEndsTheAnswers(t *testing.T) {
	port, url := startReplica(t, nil, nil)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); port.ServeAsLeader(ctx, *leadingReplica(nil)) }()
	poll.Until(t, 10*time.Second, "the replica leads", func() error {
		if status, body := askPort(t, url, "edge", "a-token"); status != http.StatusOK {
			return fmt.Errorf("answered is %d: %s", status, body)
		}
		return nil
	})
	end()
	<-done
	if status, body := askPort(t, url, "edge", "a-token"); status != http.StatusServiceUnavailable {
		t.Errorf("answered is %d: %s", status, body)
	}
}

func TestCheckLease(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	lease := func(holder string, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: now.Add(-ago)}}}
	}
	for name, tc := range map[string]struct {
		lease    *coordinationv1.Lease
		identity string
		holds    bool
	}{
		"renewed in time":            {lease("xds-0_a", 9*time.Second), "xds-0_a", true},
		"renewed a while ago":        {lease("xds-0_a", 11*time.Second), "xds-0_a", false},
		"taken by another replica":   {lease("xds-1_b", 0), "xds-0_a", false},
		"taken by the same pod anew": {lease("xds-0_b", 0), "xds-0_a", false},
		"given back":                 {lease("", 0), "", false},
		"new":                        {&coordinationv1.Lease{}, "xds-0_a", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckLease(tc.lease, tc.identity, now); (err == nil) != tc.holds {
				t.Errorf("the lease is held: %t, with error %v", err == nil, err)
			}
		})
	}
}
