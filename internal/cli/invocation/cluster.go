// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// Cluster is the API server that the flags and the kubeconfig name.
type Cluster struct {
	client.WithWatch
	// Mapper knows the resource of each kind.
	Mapper meta.RESTMapper
	// NewBuilder returns a builder of cli-runtime, which reads types and names of objects from arguments.
	NewBuilder func() *resource.Builder
	// Namespace is that of -n, else of the kubeconfig's context.
	Namespace string
	// Live reads one object as the server writes it: the hash is over these
	// bytes, and a decoded object would have lost some of their digits.
	Live func(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) ([]byte, error)
	// Targets sends the dry runs of a preview, as the executor sends its writes.
	Targets exec.Targets
	// Proxy reads the records that an executor serves.
	Proxy records.Proxy
	// Forward makes a client of a port of a pod.
	Forward proxies.Forward
	// Time is the API server's time, where an answer depends on it; nil is that of the own clock.
	Time func() time.Time
}

// NewScheme returns the kinds that the commands read and write.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// The client's own limits, as kubectl has them. The priority and fairness of the
// server protect the server.
const (
	ClientQPS   = 50
	ClientBurst = 300
)

// connectByFlags builds the clients, and sends no request.
func (inv *Invocation) connectByFlags() (*Cluster, error) {
	config, err := inv.ConfigFlags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = ClientQPS, ClientBurst
	times := servertime.New(clock.RealClock{})
	times.Watch(config)
	config.WarningHandler = rest.NewWarningWriter(inv.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := inv.ConfigFlags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	mapper, err := inv.ConfigFlags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	discovery, err := inv.ConfigFlags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	targets, err := exec.NewRESTTargets(config, mapper)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		WithWatch: api, Mapper: mapper, NewBuilder: func() *resource.Builder { return resource.NewBuilder(inv.ConfigFlags) }, Namespace: namespace, Live: liveReader(discovery.RESTClient()), Targets: targets,
		Proxy: newProxy(discovery.RESTClient()), Time: times.Now,
		Forward: func(target portforward.Target) *http.Client { return portforward.NewClient(config, target) },
	}, nil
}

// ServerTime returns the time by which windows and ages are told: the API server's time after it
// has answered a request. The assessor and the executor go by that time too.
func (inv *Invocation) ServerTime(c *Cluster) time.Time {
	if c.Time == nil {
		return inv.Now()
	}
	return c.Time()
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
