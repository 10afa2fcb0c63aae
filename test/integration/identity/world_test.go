// SPDX-License-Identifier: Apache-2.0

//go:build integration

package identity

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// shop is a namespace with pods, what we know of them, and a Verifier.
type shop struct {
	t         testing.TB
	namespace string
	verifier  *identity.Verifier
	reviews   atomic.Int64
	ahead     time.Duration // by which the Verifier's clock is

	mu    sync.Mutex
	cache map[string]*corev1.Pod
}

const front = "front"

func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{t: t, cache: map[string]*corev1.Pod{}}
	made, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}, metav1.CreateOptions{})
	s.must(err)
	s.namespace = made.Name
	_, err = admin.CoreV1().ServiceAccounts(s.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: front}}, metav1.CreateOptions{})
	s.must(err)
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// verify lets a Verifier with a configuration decide, whose reviews are counted.
func (s *shop) verify(with *rest.Config) {
	s.t.Helper()
	with = rest.CopyConfig(with) // else it counts each review once more at each call
	with.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &s.reviews} })
	api, err := identity.NewAPI(with)
	s.must(err)
	s.verifier = identity.New(identity.Config{API: api, Pods: s, Now: func() time.Time { return time.Now().Add(s.ahead) }})
}

// allowed is verify, once the rights of an account have come into force.
func (s *shop) allowed(with *rest.Config) {
	s.t.Helper()
	poll.Until(s.t, patience, "the keys can be read", func() error {
		s.verify(with)
		return s.verifier.ReadKeys(s.t.Context())
	})
}

type counting struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		c.count.Add(1)
	}
	return c.next.RoundTrip(r)
}

// Pod implements identity.Pods.
func (s *shop) Pod(namespace, name string) (uid, account string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, found := s.cache[namespace+"/"+name]
	if !found {
		return "", "", false
	}
	return string(pod.UID), pod.Spec.ServiceAccountName, true
}

// see is what an informer does.
func (s *shop) see(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[pod.Namespace+"/"+pod.Name] = pod
}

func (s *shop) create(name string) *corev1.Pod {
	s.t.Helper()
	pod, err := admin.CoreV1().Pods(s.namespace).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: front, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}, metav1.CreateOptions{})
	s.must(err)
	return pod
}

// delete a pod, and wait until the API server goes by it: it looks for the pods of
// tokens in a cache of its own first.
func (s *shop) delete(pod *corev1.Pod) {
	s.t.Helper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
		Token: s.token(pod, identity.Audience), Audiences: []string{identity.Audience},
	}}
	s.must(admin.CoreV1().Pods(s.namespace).Delete(s.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	poll.Until(s.t, patience, "its tokens are no good", func() error {
		answer, err := admin.AuthenticationV1().TokenReviews().Create(s.t.Context(), review, metav1.CreateOptions{})
		if err == nil && answer.Status.Authenticated {
			err = errors.New("they are")
		}
		return err
	})
}

// tokenLife is how long a token lives.
const tokenLife = 10 * time.Minute

// token is one of a pod, or of the account alone when pod is nil.
func (s *shop) token(pod *corev1.Pod, audiences ...string) string {
	s.t.Helper()
	spec := authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: new(int64(tokenLife.Seconds()))}
	if pod != nil {
		spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	return request(s.t, s.namespace, front, spec)
}

func (s *shop) proxy(pod *corev1.Pod) identity.Proxy {
	return identity.Proxy{Namespace: s.namespace, ServiceAccount: front, Pod: pod.Name, PodUID: string(pod.UID)}
}
