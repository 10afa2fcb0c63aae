// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/selftest"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/report"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// RoleAssess compares what runs with what was authorized. [executor.Role] may be in
// the same process; [selftest.Role] and [serve.Role] run alone.
const RoleAssess = "assess"

// Bounds of the options.
const (
	maxRetention   = 365 * 24 * time.Hour
	minDigestKey   = 16
	maxRecordGrace = 500 * time.Millisecond
	// The API server's metrics can be tens of megabytes.
	minAPIServerMetrics = 10 * time.Second
	minObjectCache      = 1 << 20
	maxConcurrentChecks = 100
	maxAssessments      = 100
	// With a plan goes the memory of what was tried.
	minPlanRetention = time.Hour
)

// Options are the assessor's flags.
type Options struct {
	options.Common
	// Role is a comma-separated list of roles.
	Role string
	// LeaderElect makes several replicas agree on one that works.
	LeaderElect bool
	// Retention is how long the Baseline of a removed object is kept.
	Retention time.Duration
	// StampedGroups are the groups that the installation stamps, comma separated.
	StampedGroups string
	// Registered are the resources that the installation registers (chart value
	// guard.resources).
	Registered []schema.GroupVersionResource
	// StampWriter says that the webhook, not an in-process policy, sets the
	// writer stamp. Such a stamp counts only together with a record of the write.
	StampWriter bool
	// StampPolicy says that such a policy sets it as well.
	StampPolicy bool
	// DigestKeyFile holds the key of the digests by which findings tell changed
	// values from unchanged ones without showing them.
	DigestKeyFile string
	// Rollouts says that the installation has rollouts.
	Rollouts bool
	// Effectiveness says that the effect of remediations is assessed.
	Effectiveness bool
	// Reports are the formats in which the assessor reports on namespaces.
	Reports []report.Format
	// MaxConcurrentAssessments bounds the assessments that are looked at at once.
	MaxConcurrentAssessments int
	// Prometheus and Alertmanager are what assessments of effects ask; without an address they are not
	// asked.
	Prometheus, Alertmanager options.Source
	// Watchdog is the name of an alert that always fires; empty for none.
	Watchdog string
	// RecordGrace is how long a change that only a record can explain waits for
	// that record.
	RecordGrace time.Duration
	// APIServerMetrics is how often the API server's metrics are read for calls
	// that it went on without; zero: never.
	APIServerMetrics time.Duration
	// ResyncPeriod is the time between two scheduled checks of an object where no
	// guard and no GuardDefaults say one; nil says nothing either, 0 says never.
	ResyncPeriod *time.Duration
	// DriftInterval is the time between two scheduled checks of an object that asks for
	// them by annotation, where nothing else says one.
	DriftInterval time.Duration
	// DriftThreshold is the share of all guarded objects that may be checked or repaired
	// at once where no GuardDefaults say one; zero when it was not given.
	DriftThreshold resync.Percent
	// MaxConcurrentChecks bounds the checks that go on at once.
	MaxConcurrentChecks int
	// ObjectCacheBytes bounds the memory that the kept versions of objects take.
	ObjectCacheBytes int64
	// ExecutorUser is the user name of the executor; empty when there is none.
	ExecutorUser string
	// PlanRetention is how long a remediation plan stays after its end.
	PlanRetention time.Duration
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	o.Common.AddFlags(fs)
	fs.StringVar(&o.Role, "role", RoleAssess, "roles of the process, comma separated: assess, execute, or both; or selftest, or serve")
	fs.BoolVar(&o.LeaderElect, "leader-elect", true, "work only while holding the lease of the role, plumbline-assessor or plumbline-executor")
	fs.DurationVar(&o.Retention, "retention", 7*24*time.Hour, "how long the Baseline of a removed object is kept")
	fs.StringVar(&o.StampedGroups, "stamped-groups", "", "groups that the installation stamps, comma separated")
	fs.Func("guarded-resources", "resources that the installation registers, as group/version/resource, comma separated; the group is empty for the core group", o.setRegistered)
	fs.BoolVar(&o.StampWriter, "stamp-writer", false, "the webhook sets the writer stamp, no in-process policy does")
	fs.BoolVar(&o.StampPolicy, "stamp-policy", false, "an in-process policy sets the writer stamp beside the webhook; with --stamp-writer, during a switch between the two")
	fs.BoolVar(&o.Rollouts, "rollouts", false, "the installation has the rollouts of ABReleases: notify people about them, authorize the writes of the executor for them, and let plans wait; it needs the permissions to read ABReleases and ReleaseWorks")
	fs.BoolVar(&o.Effectiveness, "effectiveness", false, "assess whether remediations helped, and whether they are still in effect; it needs the permissions to write EffectivenessAssessments and to read pods")
	fs.Func("reports", "formats in which the assessor reports on each namespace, comma separated: OpenReports, PolicyReport; empty: none; it needs the permissions to write reports.openreports.io or policyreports.wgpolicyk8s.io", o.setReports)
	fs.IntVar(&o.MaxConcurrentAssessments, "max-concurrent-assessments", DefaultMaxConcurrentAssessments, "how many effectiveness assessments are looked at at once")
	o.Prometheus.AddFlags(fs, "prometheus", prometheus.Name, "assessments ask for metrics; empty: no metrics are assessed")
	o.Alertmanager.AddFlags(fs, "alertmanager", alertmanager.Name, "assessments ask for alerts; empty: no alerts are assessed")
	fs.StringVar(&o.Watchdog, "alertmanager-watchdog", "", "name of an alert that always fires, which proves that alerts arrive; empty: Prometheus is asked for a proof")
	fs.StringVar(&o.DigestKeyFile, "digest-key-file", "", "file with the key of value digests, 16 bytes or more; empty: a new key at every start")
	fs.StringVar(&o.ExecutorUser, "executor-user", "", "user name of Plumbline's executor: its writes authorize no object; if empty, there is no executor, and for the role execute it is its own service account")
	fs.DurationVar(&o.PlanRetention, "plan-retention", planRetention, "how long a remediation plan stays after its end")
	fs.DurationVar(&o.RecordGrace, "record-grace", 300*time.Millisecond, "how long to wait for the record of a change without another explanation")
	fs.DurationVar(&o.APIServerMetrics, "api-server-metrics", time.Minute, "how often the API server's metrics are read for calls of the webhook that it went on without; 0: never")
	options.AddAliased(fs, &o.ResyncPeriod, resync.ParsePeriod, "resync-period", "time between two scheduled checks of an object where neither a guard nor GuardDefaults say one; 0s: never",
		options.Alias{Flag: "default-resync-period", Variable: "DEFAULT_RESYNC_PERIOD"})
	fs.DurationVar(&o.DriftInterval, "drift-interval", resync.DriftDetectionPeriod, "time between two scheduled checks of an object that asks for them by annotation, where neither a guard nor GuardDefaults set one")
	fs.Func("drift-threshold", "share of all guarded objects that may be checked or repaired at once where no GuardDefaults say one, such as 10% or 0.1", o.setDriftThreshold)
	fs.IntVar(&o.MaxConcurrentChecks, "max-concurrent-checks", checks.DefaultMaxConcurrent, "how many checks run at once, besides the bound of the drift threshold")
	fs.Int64Var(&o.ObjectCacheBytes, "object-cache-bytes", objectCacheBytes, "memory for the content of watched objects, compressed; beyond it, the namespace that holds the most is read live when it is judged")
}

// Roles of the process, one or several.
func (o *Options) Roles() []string { return options.SplitList(o.Role) }

// setRegistered is the flag's.
func (o *Options) setRegistered(text string) error {
	o.Registered = nil
	for _, name := range options.SplitList(text) {
		parts := strings.Split(name, "/")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			return fmt.Errorf("%q is not group/version/resource", name)
		}
		o.Registered = append(o.Registered, schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]})
	}
	return nil
}

// setDriftThreshold is the flag's.
func (o *Options) setDriftThreshold(text string) (err error) {
	o.DriftThreshold, err = resync.ParseThreshold(text)
	return err
}

// setReports is the flag's.
func (o *Options) setReports(text string) error {
	o.Reports = nil
	for _, name := range options.SplitList(text) {
		format := report.Format(name)
		if !slices.Contains(report.Formats(), format) || slices.Contains(o.Reports, format) {
			return fmt.Errorf("%q is given twice or is not one of %v", name, report.Formats())
		}
		o.Reports = append(o.Reports, format)
	}
	return nil
}

// Validate lists what cannot work, each with the flag as its path.
func (o *Options) Validate() field.ErrorList {
	errs := o.Common.Validate()
	errs = append(errs, validateRole(o.Role)...)
	if o.Retention < 0 || o.Retention > maxRetention {
		errs = append(errs, field.Invalid(field.NewPath("--retention"), o.Retention.String(), "must be between 0s and "+maxRetention.String()))
	}
	if o.PlanRetention < minPlanRetention || o.PlanRetention > maxRetention {
		errs = append(errs, field.Invalid(field.NewPath("--plan-retention"), o.PlanRetention.String(), "must be between "+minPlanRetention.String()+" and "+maxRetention.String()))
	}
	if o.RecordGrace < 0 || o.RecordGrace > maxRecordGrace {
		errs = append(errs, field.Invalid(field.NewPath("--record-grace"), o.RecordGrace.String(), "must be between 0s and "+maxRecordGrace.String()))
	}
	if o.APIServerMetrics != 0 && o.APIServerMetrics < minAPIServerMetrics {
		errs = append(errs, field.Invalid(field.NewPath("--api-server-metrics"), o.APIServerMetrics.String(), "must be 0s or at least "+minAPIServerMetrics.String()))
	}
	if o.DriftInterval < resync.MinPeriod || o.DriftInterval > resync.MaxPeriod {
		errs = append(errs, field.Invalid(field.NewPath("--drift-interval"), o.DriftInterval.String(), "must be between "+resync.MinPeriod.String()+" and "+resync.MaxPeriod.String()))
	}
	if o.MaxConcurrentChecks < 1 || o.MaxConcurrentChecks > maxConcurrentChecks {
		errs = append(errs, field.Invalid(field.NewPath("--max-concurrent-checks"), o.MaxConcurrentChecks, fmt.Sprintf("must be between 1 and %d", maxConcurrentChecks)))
	}
	if o.MaxConcurrentAssessments < 1 || o.MaxConcurrentAssessments > maxAssessments {
		errs = append(errs, field.Invalid(field.NewPath("--max-concurrent-assessments"), o.MaxConcurrentAssessments, fmt.Sprintf("must be between 1 and %d", maxAssessments)))
	}
	errs = append(errs, o.validateSources()...)
	if o.ObjectCacheBytes < minObjectCache {
		errs = append(errs, field.Invalid(field.NewPath("--object-cache-bytes"), o.ObjectCacheBytes, fmt.Sprintf("must be at least %d", minObjectCache)))
	}
	return errs
}

// watchdogForm is the form of the names of alerts.
var watchdogForm = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_:. ]{0,127}$`)

func (o *Options) validateSources() field.ErrorList {
	errs := append(o.Prometheus.Validate(), o.Alertmanager.Validate()...)
	path := field.NewPath("--alertmanager-watchdog")
	switch {
	case o.Watchdog == "":
	case o.Alertmanager.URL == "":
		errs = append(errs, field.Invalid(path, o.Watchdog, "is of no use without --alertmanager-url"))
	case !watchdogForm.MatchString(o.Watchdog):
		errs = append(errs, field.Invalid(path, o.Watchdog, "must be the name of an alert: letters, digits, spaces and _-:. up to 128"))
	}
	return errs
}

func validateRole(list string) field.ErrorList {
	path := field.NewPath("--role")
	roles := options.SplitList(list)
	if len(roles) == 0 {
		return field.ErrorList{field.Required(path, "name a role: assess, execute, selftest, or serve")}
	}
	var errs field.ErrorList
	for i, role := range roles {
		switch {
		case slices.Contains(roles[:i], role):
			errs = append(errs, field.Duplicate(path, role))
		case role == RoleAssess || role == executor.Role:
		case role == selftest.Role:
			if len(roles) > 1 {
				errs = append(errs, field.Invalid(path, list, "the self-test runs alone"))
			}
		case role == serve.Role:
			if len(roles) > 1 {
				errs = append(errs, field.Invalid(path, list, "the API runs alone"))
			}
		default:
			errs = append(errs, field.NotSupported(path, role, []string{RoleAssess, executor.Role, selftest.Role, serve.Role}))
		}
	}
	return errs
}

// DigestKey reads the key; nil without a file.
func (o *Options) DigestKey() ([]byte, error) {
	if o.DigestKeyFile == "" {
		return nil, nil
	}
	key, err := os.ReadFile(o.DigestKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the digest key: %w", err)
	}
	if len(key) < minDigestKey {
		return nil, fmt.Errorf("reading the digest key: %s has %d bytes, at least %d are needed", o.DigestKeyFile, len(key), minDigestKey)
	}
	return key, nil
}
