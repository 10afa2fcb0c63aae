// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/internal/notifier"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/selftest"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// run is the process without its exit code. Logs go to stderr, so that stdout
// stays for what was asked for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if answered, err := buildinfo.PrintVersion(args, "assessor", stdout); answered {
		return err
	}
	var opts assessor.Options
	var roles roleOptions
	fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
	fs.SetOutput(stdout)
	opts.AddFlags(fs)
	roles.selftest.AddFlags(fs)
	roles.execute.AddFlags(fs)
	roles.notify.AddFlags(fs)
	roles.serve.AddFlags(fs)
	switch err := options.Parse(fs, args, os.LookupEnv); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if errs := append(opts.Validate(), roles.validate(opts.Roles())...); len(errs) > 0 {
		return fmt.Errorf("checking the options: %w", errs.ToAggregate())
	}
	return runRoles(ctx, &opts, &roles, stderr)
}

// roleOptions are the flags of single roles.
type roleOptions struct {
	selftest selftest.Options
	execute  executor.Options
	notify   notifier.Options
	serve    serve.Options
}

// validate checks the flags of the roles that are asked for; those of execute have
// no defaults that work without it.
func (o *roleOptions) validate(roles []string) field.ErrorList {
	errs := append(o.selftest.Validate(), o.notify.Validate()...)
	if slices.Contains(roles, executor.Role) {
		errs = append(errs, o.execute.Validate()...)
	}
	if slices.Contains(roles, serve.Role) {
		errs = append(errs, o.serve.Validate()...)
	}
	return errs
}

// runRoles runs the roles beside their metrics and health servers; the end of one is
// the end of all, so that none goes on without the lease that it lost.
func runRoles(ctx context.Context, opts *assessor.Options, roles *roleOptions, stderr io.Writer) error {
	logger, err := telemetry.NewLogger(stderr, opts.LogFormat, opts.LogLevel)
	if err != nil {
		return fmt.Errorf("making the logger: %w", err)
	}
	log := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	p := &process{log: log, registry: telemetry.NewRegistry(component(opts.Roles()))}
	var running []func(context.Context) error
	for _, role := range opts.Roles() {
		run, err := p.role(ctx, role, opts, roles)
		if err != nil {
			return err
		}
		running = append(running, run)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return telemetry.Serve(ctx, opts.MetricsAddress, telemetry.MetricsHandler(p.registry)) })
	group.Go(func() error { return telemetry.Serve(ctx, opts.HealthAddress, p.beside(p.health.Handler())) })
	for _, run := range running {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// component is what the metrics of a process are under: the assessor where it
// carries plans out beside its own work.
func component(roles []string) string {
	switch {
	case slices.Contains(roles, selftest.Role):
		return "selftest"
	case slices.Contains(roles, serve.Role):
		return "api"
	case slices.Contains(roles, assessor.RoleAssess):
		return "assessor"
	}
	return "executor"
}

// process is what all of its roles share.
type process struct {
	log      logr.Logger
	registry *prometheus.Registry
	health   telemetry.Health
	// records serves evidence; nil when it is not served.
	records http.Handler
}

// role makes what a role does, which is started later. The process is ready when
// each of its roles is.
func (p *process) role(ctx context.Context, name string, opts *assessor.Options, roles *roleOptions) (func(context.Context) error, error) {
	var gate elected.Gate
	p.health.Add("started-"+name, gate.Check)
	switch name {
	case selftest.Role:
		return p.selftest(opts, &roles.selftest, &gate)
	case serve.Role:
		return p.serveAPI(opts, &roles.serve, &gate)
	case executor.Role:
		return p.execute(ctx, opts, roles, &gate)
	case assessor.RoleAssess:
		return p.assess(opts, &roles.notify, &gate)
	}
	return nil, fmt.Errorf("there is no role %s", name) // the options were checked
}

// beside serves what a role serves next to its health.
func (p *process) beside(health http.Handler) http.Handler {
	if p.records == nil {
		return health
	}
	mux := http.NewServeMux()
	mux.Handle("/", health)
	mux.Handle(evidencehttp.Prefix, p.records)
	return mux
}

// connect makes the client configuration of a role, by whose name the API server
// knows it.
func (p *process) connect(component, kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's address: %w", err)
	}
	config.UserAgent = "plumbline-" + component
	return config, telemetry.CountRequests(config, p.registry)
}

func (p *process) assess(opts *assessor.Options, tell *notifier.Options, gate *elected.Gate) (func(context.Context) error, error) {
	config, err := p.connect("assessor", opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	setup, err := newSetup(opts, config, p.log)
	if err != nil {
		return nil, err
	}
	setup.Registry, setup.Ready = p.registry, gate.Open
	// What the assessor tells again after a restart is urgent, and so never suppressed.
	if setup.Notifications, err = notifications(opts, tell, nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return assessor.Run(ctx, setup) }, nil
}

func (p *process) selftest(opts *assessor.Options, mine *selftest.Options, gate *elected.Gate) (func(context.Context) error, error) {
	config, err := p.connect("selftest", opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	cluster, err := selftest.NewAPIServer(config, mine.Namespace, mine.Name)
	if err != nil {
		return nil, err
	}
	wall := clock.RealClock{}
	metrics, err := selftest.NewMetrics(p.registry, wall.Now(), mine.Period)
	if err != nil {
		return nil, err
	}
	runner := &selftest.Runner{
		Cluster: cluster, Period: mine.Period, Deadline: mine.Deadline,
		Metrics: metrics, Clock: wall, Log: p.log, Ready: gate.Open,
	}
	return runner.Run, nil
}

func newSetup(opts *assessor.Options, config *rest.Config, log logr.Logger) (assessor.Setup, error) {
	key, err := opts.DigestKey()
	if err != nil {
		return assessor.Setup{}, err
	}
	setup := assessor.Setup{
		Config: config, Namespace: opts.Namespace, LeaderElect: opts.LeaderElect,
		Retention: opts.Retention, APIServerMetrics: opts.APIServerMetrics,
		Executor: opts.ExecutorUser, PlanRetention: opts.PlanRetention,
		ResyncPeriod: opts.ResyncPeriod, DriftInterval: opts.DriftInterval, DriftThreshold: opts.DriftThreshold,
		MaxConcurrentChecks: opts.MaxConcurrentChecks, ObjectCacheBytes: opts.ObjectCacheBytes,
		StampedGroups: options.SplitList(opts.StampedGroups), Registered: opts.Registered,
		Rules:       specguard.Config{Key: key, Grace: opts.RecordGrace, Stamp: stampSource(opts)},
		StampPolicy: opts.StampPolicy, Rollouts: opts.Rollouts, Reports: opts.Reports,
		Effectiveness: assessor.Effectiveness{
			Enabled: opts.Effectiveness, MaxConcurrent: opts.MaxConcurrentAssessments,
			Prometheus: opts.Prometheus.Config, Alertmanager: opts.Alertmanager.Config, Watchdog: opts.Watchdog,
		},
		Log: log, Clock: clock.RealClock{},
	}
	if opts.Redis.Address != "" {
		setup.Records = details.NewReader(details.NewClient(opts.Redis.Details()), opts.Redis.KeyPrefix)
	}
	return setup, nil
}

func stampSource(opts *assessor.Options) specguard.StampSource {
	if opts.StampWriter {
		return specguard.StampWebhook
	}
	return specguard.StampInProcess
}
