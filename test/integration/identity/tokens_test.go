// SPDX-License-Identifier: Apache-2.0

//go:build integration

package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestTokensOfARealAPIServer(t *testing.T) {
	tests := map[string]struct {
		token   func(s *shop, pod *corev1.Pod) string
		want    identity.Reason
		reviews int64
	}{
		"of a pod that we know": {
			token: func(s *shop, pod *corev1.Pod) string { s.see(pod); return s.token(pod, identity.Audience) },
		},
		"of a pod that is newer than the cache": {
			token: func(s *shop, pod *corev1.Pod) string { return s.token(pod, identity.Audience) }, reviews: 1,
		},
		"for the API server": {
			token: func(s *shop, pod *corev1.Pod) string { s.see(pod); return s.token(pod) }, want: identity.ReasonAudience,
		},
		"for somebody else": {
			token: func(s *shop, pod *corev1.Pod) string { s.see(pod); return s.token(pod, "vault") }, want: identity.ReasonAudience,
		},
		"of a service account alone": {
			token: func(s *shop, pod *corev1.Pod) string { s.see(pod); return s.token(nil, identity.Audience) }, want: identity.ReasonNotBound,
		},
		"of a pod that was deleted": {
			token: func(s *shop, pod *corev1.Pod) string {
				token := s.token(pod, identity.Audience)
				s.delete(pod)
				return token
			},
			want: identity.ReasonPodGone, reviews: 1,
		},
		"of a pod that was made again under its name": {
			token: func(s *shop, pod *corev1.Pod) string {
				token := s.token(pod, identity.Audience)
				s.delete(pod)
				s.see(s.create(pod.Name))
				return token
			},
			want: identity.ReasonWrongPod, reviews: 1,
		},
		"of the pod that was made again, while the cache has the old one": {
			token: func(s *shop, pod *corev1.Pod) string {
				s.see(pod.DeepCopy())
				s.delete(pod)
				*pod = *s.create(pod.Name)
				return s.token(pod, identity.Audience)
			},
			reviews: 1,
		},
		"after its end": {
			token: func(s *shop, pod *corev1.Pod) string {
				s.see(pod)
				s.ahead = 10*time.Minute + 15*time.Second
				return s.token(pod, identity.Audience)
			},
			want: identity.ReasonExpired,
		},
		"with a signature of another token": {
			token: func(s *shop, pod *corev1.Pod) string {
				s.see(pod)
				token, other := s.token(pod, identity.Audience), s.token(pod, "vault")
				return token[:strings.LastIndex(token, ".")] + other[strings.LastIndex(other, "."):]
			},
			want: identity.ReasonSignature,
		},
		"signed with a key that nobody knows": {
			token: func(s *shop, pod *corev1.Pod) string { s.see(pod); return s.resigned(s.token(pod, identity.Audience)) },
			want:  identity.ReasonRefused, reviews: 1,
		},
		"that is none": {
			token: func(*shop, *corev1.Pod) string { return "opaque" }, want: identity.ReasonRefused, reviews: 1,
		},
	}
	with := as(t, xds)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.allowed(with)
			begin := time.Now()
			pod := s.create("web-0")
			token := tc.token(s, pod)
			before := s.reviews.Load()
			got, err := s.verifier.Verify(t.Context(), token)
			want := s.proxy(pod)
			if want.Reviewed = tc.reviews > 0; tc.want != "" {
				want = identity.Proxy{}
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(identity.Proxy{}, "Expires")); diff != "" || identity.ReasonOf(err) != tc.want {
				t.Errorf("%v, want %q (-want +got):\n%s", err, tc.want, diff)
			}
			// The token says when it ends in whole seconds.
			earliest, latest := begin.Add(tokenLife).Truncate(time.Second), time.Now().Add(tokenLife)
			if err == nil && (got.Expires.Before(earliest) || got.Expires.After(latest)) {
				t.Errorf("it ends at %s, want a time from %s to %s", got.Expires, earliest, latest)
			}
			if asked := s.reviews.Load() - before; asked != tc.reviews {
				t.Errorf("%d reviews, want %d", asked, tc.reviews)
			}
		})
	}
}

// resigned is a token with the same claims and another signature.
func (s *shop) resigned(token string) string {
	s.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	s.must(err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "forged"}}, nil)
	s.must(err)
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	s.must(err)
	signed, err := signer.Sign(claims)
	s.must(err)
	forged, err := signed.CompactSerialize()
	s.must(err)
	return forged
}

// Without the right to read the keys everything works, and costs a review each.
func TestTokensWithoutTheRightToReadKeys(t *testing.T) {
	s := newShop(t)
	s.verify(as(t, blind))
	pod := s.create("web-0")
	s.see(pod)
	want := s.proxy(pod)
	want.Reviewed = true
	poll.Until(t, patience, "the right to have tokens reviewed is in force", func() error {
		got, err := s.verifier.Verify(t.Context(), s.token(pod, identity.Audience))
		if err == nil {
			want.Expires = got.Expires
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
		return err
	})
	if err := s.verifier.ReadKeys(t.Context()); err == nil {
		t.Error("nobody is told that the keys cannot be read")
	}
	if _, err := s.verifier.Verify(t.Context(), s.resigned(s.token(pod, identity.Audience))); identity.ReasonOf(err) != identity.ReasonRefused {
		t.Errorf("a forged one: %v", err)
	}
}

func TestTokensWhileTheAPIServerIsAway(t *testing.T) {
	s := newShop(t)
	way, err := faultproxy.Start("tcp", strings.TrimPrefix(strings.TrimSuffix(config.Host, "/"), "https://"))
	s.must(err)
	defer func() { s.must(way.Close()) }()
	with := as(t, xds)
	with.Host = "https://" + way.Address()
	known, unknown := s.create("known"), s.create("unknown")
	s.see(known)
	cut := func() {
		way.Set(faultproxy.Fault{Refuse: true})
		way.Cut()
	}
	verdict := func(pod *corev1.Pod) identity.Reason {
		_, err := s.verifier.Verify(t.Context(), s.token(pod, identity.Audience))
		return identity.ReasonOf(err)
	}

	cut()
	s.verify(with)
	if got := verdict(known); got != identity.ReasonUnavailable {
		t.Errorf("before the keys were read: %q", got)
	}
	way.Set(faultproxy.Fault{})
	s.allowed(with)
	cut()
	if got := verdict(known); got != "" {
		t.Errorf("after the keys were read: %q", got)
	}
	if got := verdict(unknown); got != identity.ReasonUnavailable {
		t.Errorf("after the keys were read, of a pod that we do not know: %q", got)
	}
	way.Set(faultproxy.Fault{})
	if got := verdict(unknown); got != "" {
		t.Errorf("when it is back: %q", got)
	}
}

// At its highest verbosity the client logs what it sends.
func TestNoLogHasAToken(t *testing.T) {
	s := newShop(t)
	s.allowed(as(t, xds))
	var log locked
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	s.must(flags.Parse([]string{"-v=10", "-logtostderr=false"}))
	klog.SetOutput(&log)
	token := s.token(s.create("web-0"), identity.Audience)
	_, err := s.verifier.Verify(t.Context(), token)
	klog.Info("the end")
	klog.Flush()
	s.must(flags.Parse([]string{"-v=0", "-logtostderr=true"}))
	s.must(err)
	// The request for the token was logged by the test's own client, the answer too.
	var asked string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "tokenreviews") || strings.Contains(line, "TokenReview") {
			asked += line
		}
	}
	claims := strings.Split(token, ".")[1]
	if !strings.Contains(log.String(), "the end") || strings.Contains(asked, claims[:40]) {
		t.Errorf("the log has the token, or is none:\n%s", asked)
	}
}

type locked struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}
