// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// Processes are those of Plumbline in the cluster, as far as the caller reaches their ports.
type Processes interface {
	// System returns the namespace in which they run.
	System(ctx context.Context) (string, error)
	// Proxy sends a GET to a port of a pod, and returns the body.
	Proxy(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error)
	// Forward makes a client of a port of a pod, for the caller of ctx.
	Forward(ctx context.Context, target portforward.Target) *http.Client
}

// naming is a reader whose errors name the request that failed.
type naming struct{ Cluster }

// Get implements client.Reader.
func (n naming) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := n.Cluster.Get(ctx, key, object, options...); err != nil {
		return &requestError{verb: "get", kind: kindOf(object), namespace: key.Namespace, err: err}
	}
	return nil
}

// List implements client.Reader.
func (n naming) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := n.Cluster.List(ctx, list, options...); err != nil {
		wanted := (&client.ListOptions{}).ApplyOptions(options)
		return &requestError{verb: "list", kind: strings.TrimSuffix(kindOf(list), "List"), namespace: wanted.Namespace, err: err}
	}
	return nil
}

// kindOf returns the name of the Go type of an object, which is that of its kind.
func kindOf(object any) string { return reflect.TypeOf(object).Elem().Name() }

// OpenArchive finds the signed records that an executor serves to the caller.
func OpenArchive(ctx context.Context, c Cluster) (*records.Archive, error) {
	system, err := findSystem(ctx, c)
	if err != nil {
		return nil, err
	}
	return records.OpenArchive(ctx, naming{c}, c.Proxy, system)
}

// findSystem finds the namespace of the processes, by the ledgers unless the door knows it.
func findSystem(ctx context.Context, c Cluster) (string, error) {
	system, err := c.System(ctx)
	if err != nil {
		return "", &requestError{verb: "list", kind: "RemediationLedger", err: err}
	}
	return system, nil
}

// VerifyEvidence verifies all records that an executor serves to the caller, and compares them with the plans.
func VerifyEvidence(ctx context.Context, c Cluster) (*records.Archive, *records.Found, error) {
	archive, err := OpenArchive(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if archive.Known.Plans, archive.Known.Running, err = records.ReadPlans(ctx, naming{c}); err != nil {
		return nil, nil, err
	}
	found, err := archive.Find(ctx, func(*evidence.Record) bool { return false })
	return archive, found, err
}

// findServers finds the replicas of the discovery server.
func findServers(ctx context.Context, c Cluster) ([]proxies.Server, error) {
	system, err := findSystem(ctx, c)
	if err != nil {
		return nil, err
	}
	forward := func(target portforward.Target) *http.Client { return c.Forward(ctx, target) }
	return proxies.FindServers(ctx, naming{c}, forward, system)
}

// ReadProxies asks each replica of the discovery server for the proxies of a namespace, or of all where none is
// named, and adds the pods whose proxies no replica knows. Replicas that do not answer are in the report.
func ReadProxies(ctx context.Context, c Cluster, namespace string) (*proxies.Report, error) {
	servers, err := findServers(ctx, c)
	if err != nil {
		return nil, err
	}
	report := proxies.List(ctx, servers, proxies.Filter{Namespace: namespace})
	injected, err := proxies.ListInjected(ctx, naming{c}, namespace)
	if err != nil { // without these pods, each proxy would look connected
		return nil, err
	}
	report.AddAbsent(injected)
	report.Sort()
	return report, nil
}

// ReadProxy asks each replica of the discovery server for the proxy of a pod with its resources.
func ReadProxy(ctx context.Context, c Cluster, namespace, pod string) (*proxies.Report, error) {
	servers, err := findServers(ctx, c)
	if err != nil {
		return nil, err
	}
	return proxies.Get(ctx, servers, namespace, pod, proxies.Filter{}), nil
}

// ReadHour asks the replica of the discovery server that leads for the last hour of a release.
func ReadHour(ctx context.Context, c Cluster, r *v1alpha1.ABRelease) (*history.Series, error) {
	servers, err := findServers(ctx, c)
	if err != nil {
		return nil, err
	}
	return proxies.History(ctx, servers, history.Release{Namespace: r.Namespace, Name: r.Name, UID: string(r.UID)})
}

// processProblem makes a problem of a process that the caller does not reach, with the right that the caller lacks or
// the name of the process; nil for all other errors. Words of a process go to the log.
func processProblem(log *slog.Logger, err error) error {
	denied, isDenied := errors.AsType[*portforward.DeniedError](err)
	silent, isSilent := errors.AsType[*proxies.SilentError](err)
	away, isAway := errors.AsType[*records.AwayError](err)
	switch {
	case isSilent && silent.Denied != nil:
		denied, isDenied = silent.Denied, true
	case isAway && away.Err == nil:
		return wire.NewProblem(wire.Unavailable, err.Error())
	case isAway && away.Pod == "":
		return nil // the list of pods has failed, and the error names that request
	}
	switch {
	case isDenied:
		if token, is := errors.AsType[*wire.Problem](denied); is {
			return token
		}
		return lacking(wire.MissingRight{Verb: "create", Kind: "pods/portforward", Namespace: denied.Target.Namespace})
	case isAway && apierrors.IsForbidden(away.Err):
		return lacking(wire.MissingRight{Verb: "get", Kind: "pods/proxy", Namespace: away.System})
	case isAway:
		log.Warn("the executor does not serve its records", "pod", away.Pod, "error", err)
		return wire.NewProblem(wire.Unavailable, fmt.Sprintf("pod %s does not serve its records (executor.evidence.serve of the chart)", away.Pod))
	case isSilent:
		log.Warn("replicas of the discovery server do not answer", "error", err)
		return wire.NewProblem(wire.Unavailable, fmt.Sprintf("%d of %d replicas of the discovery server did not answer: %s", len(silent.Names), silent.Replicas, strings.Join(silent.Names, ", ")))
	}
	return storeProblem(log, err)
}

// storeProblem makes a problem of records that could not be read to the end.
func storeProblem(log *slog.Logger, err error) error {
	_, noServer := errors.AsType[*proxies.NoServerError](err)
	_, notLed := errors.AsType[*proxies.NotLedError](err)
	_, noKey := errors.AsType[*records.NoKeyError](err)
	_, several := errors.AsType[*actions.SeveralSystemsError](err)
	if noServer || notLed || noKey || several {
		return wire.NewProblem(wire.Unavailable, err.Error())
	}
	if _, is := errors.AsType[*evidence.StoreError](err); !is {
		return nil
	}
	log.Warn("the records could not be read to the end", "error", err)
	return wire.NewProblem(wire.Unavailable, "the executor did not serve its records to the end: try again")
}
