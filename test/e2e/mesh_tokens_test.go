// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// shortestToken is what a token lives at least: the API server gives none that ends
// sooner.
const shortestToken = 10 * time.Minute

// streams of the namespace's proxies, by pod, as the plugin lists them. Of two of one
// pod it is the younger one: the other may be dead, and that not known yet.
func (m *mesh) streams(ctx context.Context) (map[string]proxieshttp.Proxy, error) {
	result, err := cluster.Run(ctx, []string{"kubectl", "plumbline", "proxies", "-n", m.namespace, "-o", "json"})
	if err != nil {
		return nil, err
	}
	var list struct {
		Proxies []proxieshttp.Proxy `json:"proxies"`
	}
	if err := json.Unmarshal([]byte(result.Stdout), &list); err != nil {
		return nil, fmt.Errorf("reading what the plugin says of proxies: %w", err)
	}
	streams := map[string]proxieshttp.Proxy{}
	for _, p := range list.Proxies {
		if p.ConnectedSince.After(streams[p.Pod].ConnectedSince) {
			streams[p.Pod] = p
		}
	}
	return streams, nil
}

// token is what is known of that of a stream.
type token struct {
	uid                        string
	started                    time.Time // the pod
	lifetime                   time.Duration
	connected, issued, expires time.Time
}

func (k token) String() string {
	return fmt.Sprintf("connected at %s with a token from %s to %s", k.connected.Format(time.TimeOnly), k.issued.Format(time.TimeOnly), k.expires.Format(time.TimeOnly))
}

// tokensNow are those of all injected pods that run; it is an error if one is not
// connected.
func (m *mesh) tokensNow(ctx context.Context) (map[string]token, error) {
	streams, err := m.streams(ctx)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := cluster.ReadAll(ctx, &pods, m.namespace, runtimeclient.HasLabels{inject.LabelProxy}); err != nil {
		return nil, err
	}
	tokens := map[string]token{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		s, connected := streams[p.Name]
		if !connected || s.PodUID != string(p.UID) || s.TokenExpires.IsZero() {
			return nil, fmt.Errorf("the proxy of %s: %+v", p.Name, s)
		}
		lifetime := tokenLifetime(p)
		tokens[p.Name] = token{
			uid: s.PodUID, started: p.Status.StartTime.Time, lifetime: lifetime,
			connected: s.ConnectedSince, issued: s.TokenExpires.Add(-lifetime), expires: s.TokenExpires,
		}
	}
	return tokens, nil
}

// tokenLifetime is what the pod asks the kubelet for.
func tokenLifetime(p *corev1.Pod) time.Duration {
	for _, v := range p.Spec.Volumes {
		if v.Name != inject.Volume || v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil && s.ServiceAccountToken.ExpirationSeconds != nil {
				return time.Duration(*s.ServiceAccountToken.ExpirationSeconds) * time.Second
			}
		}
	}
	return 0
}

// tokens waits until all injected pods are connected.
func (m *mesh) tokens() (tokens map[string]token) {
	m.Helper()
	m.eventually("all proxies are connected", func(ctx context.Context) (bool, string) {
		var err error
		if tokens, err = m.tokensNow(ctx); err != nil {
			return false, err.Error()
		}
		return len(tokens) > 0, "no pod has a proxy"
	})
	return tokens
}

// renewed says that each proxy came back after the token that it had before had ended,
// with one that the kubelet has brought into its pod while that ran.
func (m *mesh) renewed(before map[string]token) {
	m.Helper()
	now := m.tokens()
	for pod, was := range before {
		is := now[pod]
		m.Logf("%s: %s; then %s", pod, was, is)
		switch away := outage(m.T); {
		case away < was.lifetime:
			m.Logf("%s: its token lives for %s and the discovery server was away for %s: it need not have another one", pod, was.lifetime, away)
		case is.uid != was.uid:
			m.Errorf("%s is another pod: %s, was %s", pod, is.uid, was.uid)
		case !is.connected.After(was.expires):
			m.Errorf("%s came back before its token had ended", pod)
		case is.expires.Before(is.connected), is.issued.Before(is.started.Add(is.lifetime / 2)):
			m.Errorf("%s, which runs since %s, came back with the token that it had from the beginning", pod, is.started.Format(time.TimeOnly))
		}
	}
}
