// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// cluster is the API server that the flags and the kubeconfig name.
type cluster struct {
	client.WithWatch
	mapper meta.RESTMapper
	// namespace is that of -n, else of the kubeconfig's context.
	namespace string
	// live reads one object as the server writes it: the hash is over these
	// bytes, and a decoded object would have lost some of their digits.
	live func(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) ([]byte, error)
	// targets sends the dry runs of a preview, as the executor sends its writes.
	targets exec.Targets
	// proxy reads what an executor serves.
	proxy proxy
	// forward makes a client of a port of a pod.
	forward func(portforward.Target) *http.Client
	// time is the API server's, where what is asked depends on it; nil is one's own.
	time func() time.Time
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// The client's own limits, as kubectl has them: the server's priority and
// fairness is what protects it.
const (
	clientQPS   = 50
	clientBurst = 300
)

// connectByFlags builds the clients; nothing is sent yet.
func (a *app) connectByFlags() (*cluster, error) {
	config, err := a.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	times := servertime.New(clock.RealClock{})
	times.Watch(config)
	config.WarningHandler = rest.NewWarningWriter(a.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := a.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	mapper, err := a.config.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	discovery, err := a.config.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	targets, err := exec.NewRESTTargets(config, mapper)
	if err != nil {
		return nil, err
	}
	return &cluster{
		WithWatch: api, mapper: mapper, namespace: namespace, live: liveReader(discovery.RESTClient()), targets: targets,
		proxy: newProxy(discovery.RESTClient()), time: times.Now,
		forward: func(target portforward.Target) *http.Client { return portforward.NewClient(config, target) },
	}, nil
}

// serverTime is by what windows and ages are told: the API server's time after it
// has answered something, which is what the assessor and the executor go by too.
func (a *app) serverTime(c *cluster) time.Time {
	if c.time == nil {
		return a.now()
	}
	return c.time()
}

func liveReader(raw rest.Interface) func(context.Context, *meta.RESTMapping, string, string) ([]byte, error) {
	return func(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) ([]byte, error) {
		root := []string{"/apis", mapping.Resource.Group}
		if mapping.Resource.Group == "" {
			root = []string{"/api"}
		}
		path := slices.Concat(root, []string{mapping.Resource.Version, "namespaces", namespace, mapping.Resource.Resource, name})
		result := raw.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(ctx)
		if err := result.Error(); err != nil { // with the server's own words, unlike Raw's
			return nil, err
		}
		return result.Raw()
	}
}

func (c *cluster) baseline(ctx context.Context, t target) (*v1alpha1.Baseline, error) {
	baseline := &v1alpha1.Baseline{}
	key := client.ObjectKey{Namespace: t.namespace, Name: t.baselineName()}
	if err := c.Get(ctx, key, baseline); err != nil {
		return nil, t.explainMissingBaseline(err)
	}
	return baseline, nil
}
