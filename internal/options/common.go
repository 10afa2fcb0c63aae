// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

// Redis says where the details of writes go. An empty Address switches Redis off.
type Redis struct {
	// Address is host:port, or with Mode Sentinel or Cluster several, parted by commas.
	Address string
	// Mode is one of those of package details.
	Mode string
	// MasterName is that of the primary which Sentinels watch.
	MasterName   string
	Username     string
	PasswordFile string
	// SentinelPasswordFile has the password of the Sentinels.
	SentinelPasswordFile string
	TLS                  bool
	CAFile               string
	// CertificateFile and KeyFile are those of the client.
	CertificateFile string
	KeyFile         string
	KeyPrefix       string
	// Timeout bounds every call.
	Timeout time.Duration
}

// What Redis.Timeout may be. Nothing that answers people waits for Redis longer than
// one call.
const minRedisTimeout, maxRedisTimeout = 10 * time.Millisecond, 10 * time.Second

// Details is where the stream of details is.
func (r *Redis) Details() details.Config {
	cfg := details.Config{
		Mode: details.Mode(r.Mode), Address: r.Address, MasterName: r.MasterName, Username: r.Username,
		PasswordFile: r.PasswordFile, SentinelPasswordFile: r.SentinelPasswordFile, CallBudget: r.Timeout,
	}
	if r.TLS {
		cfg.TLS = &details.TLS{CAFile: r.CAFile, CertificateFile: r.CertificateFile, KeyFile: r.KeyFile}
	}
	return cfg
}

// Server are the options that every server takes.
type Server struct {
	// MetricsAddress and HealthAddress are host:port; empty switches the server off.
	MetricsAddress string
	HealthAddress  string
	// LogFormat is json or text, LogLevel debug, info, warn or error.
	LogFormat string
	LogLevel  string
	// Namespace is Plumbline's own.
	Namespace string
	// Kubeconfig is a file; empty means the pod's own service account.
	Kubeconfig string
}

// Common are the options of the servers that work with Redis.
type Common struct {
	Server
	Redis Redis
}

// AddFlags registers the flags with their defaults.
func (s *Server) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&s.MetricsAddress, "metrics-address", ":8080", "address of the metrics server; empty switches it off")
	fs.StringVar(&s.HealthAddress, "health-address", ":8081", "address of the health server; empty switches it off")
	fs.StringVar(&s.LogFormat, "log-format", "json", "json or text")
	fs.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&s.Namespace, "namespace", "plumbline-system", "namespace that Plumbline runs in")
	fs.StringVar(&s.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty means the pod's service account")
}

// AddFlags registers the flags with their defaults.
func (c *Common) AddFlags(fs *flag.FlagSet) {
	c.Server.AddFlags(fs)
	fs.StringVar(&c.Redis.Address, "redis-address", "", "host:port of Redis, or of several Sentinels or servers of a cluster, parted by commas; empty switches it off")
	fs.StringVar(&c.Redis.Mode, "redis-mode", string(details.Standalone), "Standalone, Sentinel or Cluster")
	fs.StringVar(&c.Redis.MasterName, "redis-master-name", "", "name of the primary that the Sentinels watch, with --redis-mode=Sentinel")
	fs.StringVar(&c.Redis.Username, "redis-username", "", "ACL user of Redis")
	fs.StringVar(&c.Redis.PasswordFile, "redis-password-file", "", "file that holds the password of Redis; read at every connect")
	fs.StringVar(&c.Redis.SentinelPasswordFile, "redis-sentinel-password-file", "", "file that holds the password of the Sentinels, with --redis-mode=Sentinel; read at every question")
	fs.BoolVar(&c.Redis.TLS, "redis-tls", false, "speak TLS with Redis")
	fs.StringVar(&c.Redis.CAFile, "redis-ca-file", "", "file of the authorities that Redis is known by, with --redis-tls; read at every connect; empty means those of the system")
	fs.StringVar(&c.Redis.CertificateFile, "redis-client-certificate-file", "", "file of the certificate that is presented to Redis, with --redis-tls; read at every connect")
	fs.StringVar(&c.Redis.KeyFile, "redis-client-key-file", "", "file of the key of that certificate; read at every connect")
	fs.StringVar(&c.Redis.KeyPrefix, "redis-key-prefix", "plumbline", "prefix of all keys in Redis")
	fs.DurationVar(&c.Redis.Timeout, "redis-timeout", details.CallBudget, "time limit of a call to Redis; after it, the caller continues without Redis")
}

// keyPrefix keeps prefixes free of what has a meaning in keys and ACL patterns.
var keyPrefix = regexp.MustCompile(`^[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?$`)

// Validate lists what cannot work, each with the flag as its path.
func (s *Server) Validate() field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateAddress("metrics-address", s.MetricsAddress)...)
	errs = append(errs, validateAddress("health-address", s.HealthAddress)...)
	errs = append(errs, validateChoice("log-format", s.LogFormat, "json", "text")...)
	errs = append(errs, validateChoice("log-level", s.LogLevel, "debug", "info", "warn", "error")...)
	for _, msg := range validation.IsDNS1123Label(s.Namespace) {
		errs = append(errs, field.Invalid(flagPath("namespace"), s.Namespace, msg))
	}
	errs = append(errs, validateFile("kubeconfig", s.Kubeconfig)...)
	return errs
}

// Validate lists what cannot work, each with the flag as its path.
func (c *Common) Validate() field.ErrorList {
	return append(c.Server.Validate(), c.Redis.validate()...)
}

func (r *Redis) validate() field.ErrorList {
	var errs field.ErrorList
	if r.Address != "" {
		errs = append(errs, r.validateAddresses()...)
		errs = append(errs, validateFile("redis-password-file", r.PasswordFile)...)
		errs = append(errs, validateFile("redis-sentinel-password-file", r.SentinelPasswordFile)...)
		errs = append(errs, validateFile("redis-ca-file", r.CAFile)...)
		errs = append(errs, validateFile("redis-client-certificate-file", r.CertificateFile)...)
		errs = append(errs, validateFile("redis-client-key-file", r.KeyFile)...)
	}
	errs = append(errs, r.validateMode()...)
	if r.CAFile != "" && !r.TLS {
		errs = append(errs, field.Invalid(flagPath("redis-ca-file"), r.CAFile, "is of no use without --redis-tls"))
	}
	if (r.CertificateFile == "") != (r.KeyFile == "") {
		errs = append(errs, field.Invalid(flagPath("redis-client-key-file"), r.KeyFile, "must be set together with --redis-client-certificate-file"))
	}
	if r.CertificateFile != "" && !r.TLS {
		errs = append(errs, field.Invalid(flagPath("redis-client-certificate-file"), r.CertificateFile, "is of no use without --redis-tls"))
	}
	if r.TLS && strings.HasPrefix(r.Address, "/") {
		errs = append(errs, field.Invalid(flagPath("redis-tls"), true, "a unix socket does not speak TLS"))
	}
	if r.Timeout < minRedisTimeout || r.Timeout > maxRedisTimeout {
		errs = append(errs, field.Invalid(flagPath("redis-timeout"), r.Timeout.String(), "must be between "+minRedisTimeout.String()+" and "+maxRedisTimeout.String()))
	}
	if !keyPrefix.MatchString(r.KeyPrefix) {
		errs = append(errs, field.Invalid(flagPath("redis-key-prefix"), r.KeyPrefix, "must match "+keyPrefix.String()))
	}
	return errs
}

func flagPath(name string) *field.Path { return field.NewPath("--" + name) }

func validateChoice(name, value string, allowed ...string) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(flagPath(name), value, allowed)}
}

func validateAddress(name, value string) field.ErrorList {
	if value == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return field.ErrorList{field.Invalid(flagPath(name), value, "must be host:port")}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return field.ErrorList{field.Invalid(flagPath(name), value, "the port must be a number from 0 to 65535")}
	}
	return nil
}

// validateAddresses takes one address, or several where the mode has several. A unix
// socket is a path; go-redis takes it by its leading slash.
func (r *Redis) validateAddresses() field.ErrorList {
	standalone := r.Mode == string(details.Standalone)
	if standalone && r.Address[0] == '/' {
		return nil
	}
	if standalone {
		return validateAddress("redis-address", r.Address)
	}
	var errs field.ErrorList
	for address := range strings.SplitSeq(r.Address, ",") {
		if address == "" {
			errs = append(errs, field.Invalid(flagPath("redis-address"), r.Address, "must be host:port, or several parted by commas"))
		}
		errs = append(errs, validateAddress("redis-address", address)...)
	}
	return errs
}

func (r *Redis) validateMode() field.ErrorList {
	errs := validateChoice("redis-mode", r.Mode, string(details.Standalone), string(details.Sentinel), string(details.Cluster))
	if (r.Mode == string(details.Sentinel)) != (r.MasterName != "") {
		errs = append(errs, field.Invalid(flagPath("redis-master-name"), r.MasterName, "must be set with --redis-mode=Sentinel, and with no other mode"))
	}
	if r.SentinelPasswordFile != "" && r.Mode != string(details.Sentinel) {
		errs = append(errs, field.Invalid(flagPath("redis-sentinel-password-file"), r.SentinelPasswordFile, "is of no use without --redis-mode=Sentinel"))
	}
	return errs
}

// validateLoopback takes an address that only the own pod reaches.
func validateLoopback(name, value string) field.ErrorList {
	errs := validateAddress(name, value)
	if value == "" || len(errs) > 0 {
		return errs
	}
	if at, err := netip.ParseAddrPort(value); err != nil || !at.Addr().IsLoopback() {
		return field.ErrorList{field.Invalid(flagPath(name), value, "must be a loopback address, such as 127.0.0.1:8083: the port asks for no password")}
	}
	return nil
}

func validateFile(name, path string) field.ErrorList {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(flagPath(name), path, err.Error())}
	case info.IsDir():
		return field.ErrorList{field.Invalid(flagPath(name), path, "is a directory")}
	default:
		return nil
	}
}
