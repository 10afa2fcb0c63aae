// SPDX-License-Identifier: Apache-2.0

package details

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// CallBudget bounds every call to Redis but the blocking read, which adds to it
// how long it was asked to wait and how late the server may end that wait.
const CallBudget = 50 * time.Millisecond

// Mode is the kind of an installation of Redis.
type Mode string

// The modes.
const (
	Standalone Mode = "Standalone"
	// Sentinel has the client ask Sentinels for the primary, again after a failover.
	Sentinel Mode = "Sentinel"
	Cluster  Mode = "Cluster"
)

// Config says where Redis is.
type Config struct {
	// Mode is Standalone if it is empty.
	Mode Mode
	// Address is host:port, or the path of a unix socket. For Sentinel and Cluster it
	// may be several of host:port, parted by commas.
	Address string
	// MasterName is the name of the primary that the Sentinels watch.
	MasterName string
	Username   string
	// PasswordFile is read at every connect, so that a rotated password needs
	// no restart; empty means no password.
	PasswordFile string
	// SentinelPasswordFile has the password of the Sentinels. The client reads it at each
	// question; empty means no password.
	SentinelPasswordFile string
	// TLS is nil for a server that speaks plain text.
	TLS *TLS
	// CallBudget bounds every call; zero means the constant of that name.
	CallBudget time.Duration
}

// NewClient returns a client whose calls keep the budget and are never repeated
// blindly: a retry after a time-out could write twice. It does not connect yet.
// In a cluster the client follows redirections, and asks another server after a
// failure, both within the budget: a time-out leaves no time to write again.
func NewClient(cfg Config) redis.UniversalClient {
	options := optionsOf(cfg)
	if cfg.Mode == Cluster {
		return redis.NewClusterClient(options.Cluster())
	}
	one := options.Simple()
	if strings.HasPrefix(cfg.Address, "/") {
		one.Network = "unix"
	}
	return redis.NewClient(one)
}

// optionsOf are the options that each mode has.
func optionsOf(cfg Config) *redis.UniversalOptions {
	budget := cmp.Or(cfg.CallBudget, CallBudget)
	addresses := strings.Split(cfg.Address, ",")
	dial := dialFunc((&net.Dialer{Timeout: budget}).DialContext)
	if cfg.TLS != nil {
		dial = cfg.TLS.dialTLS(budget)
	}
	if cfg.Mode == Sentinel {
		dial = (&sentinels{addresses: addresses, master: cfg.MasterName, passwordFile: cfg.SentinelPasswordFile, dial: dial, budget: budget}).dialPrimary
	}
	return &redis.UniversalOptions{
		Addrs:                 addresses,
		Dialer:                bounded(dial),
		DialTimeout:           budget,
		ReadTimeout:           budget,
		WriteTimeout:          budget,
		PoolTimeout:           budget,
		MaxRetries:            -1,
		DialerRetries:         1,
		PoolSize:              4,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		Protocol:              2,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			return credentials(cfg)
		},
	}
}

// budgetOf is what a client's calls may take.
func budgetOf(client redis.UniversalClient) time.Duration {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().ReadTimeout
	case *redis.ClusterClient:
		return c.Options().ReadTimeout
	default:
		return CallBudget
	}
}

func credentials(cfg Config) (username, password string, err error) {
	if password, err = readPassword(cfg.PasswordFile); err != nil {
		return "", "", fmt.Errorf("reading the password of Redis: %w", err)
	}
	return cfg.Username, password, nil
}

// readPassword reads the password in a file without the end of the line. An empty path gives
// an empty password.
func readPassword(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err //nolint:wrapcheck // the callers say whose password
	}
	return strings.TrimRight(string(raw), "\r\n"), nil
}

// SetClientLog sends what the Redis client library prints by itself, one line
// for every failed dial, to log at debug level. The library has one logger for
// the whole process; only main and tests call this.
func SetClientLog(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

type clientLog struct{ log *slog.Logger }

// Printf implements the logger of the Redis client library.
func (c clientLog) Printf(ctx context.Context, format string, v ...any) {
	c.log.DebugContext(ctx, "redis.client", "message", fmt.Sprintf(format, v...))
}

// streamKey is the stream's key under a prefix.
func streamKey(prefix string) string { return prefix + ":details" }

const (
	// recordField is the one field of an entry.
	recordField = "r"
	// maxStreamLength caps the stream; the server trims roughly, in whole nodes.
	maxStreamLength = 100_000
	// Retention is how long records are kept.
	Retention = 24 * time.Hour
)
