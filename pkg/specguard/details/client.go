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

// Config says where Redis is.
type Config struct {
	// Address is host:port, or the path of a unix socket.
	Address  string
	Username string
	// PasswordFile is read at every connect, so that a rotated password needs
	// no restart; empty means no password.
	PasswordFile string
	// TLS is nil for a server that speaks plain text.
	TLS *TLS
	// CallBudget bounds every call; zero means the constant of that name.
	CallBudget time.Duration
}

// NewClient returns a client whose calls keep the budget and are never repeated
// blindly: a retry after a time-out could write twice. It does not connect yet.
func NewClient(cfg Config) *redis.Client {
	network := "tcp"
	if strings.HasPrefix(cfg.Address, "/") {
		network = "unix"
	}
	budget := cmp.Or(cfg.CallBudget, CallBudget)
	dial := (&net.Dialer{Timeout: budget}).DialContext
	if cfg.TLS != nil {
		dial = cfg.TLS.dialTLS(budget)
	}
	return redis.NewClient(&redis.Options{
		Network:               network,
		Addr:                  cfg.Address,
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
	})
}

// budgetOf is what a client's calls may take.
func budgetOf(client redis.UniversalClient) time.Duration {
	if c, ok := client.(*redis.Client); ok {
		return c.Options().ReadTimeout
	}
	return CallBudget
}

func credentials(cfg Config) (username, password string, err error) {
	if cfg.PasswordFile == "" {
		return cfg.Username, "", nil
	}
	raw, err := os.ReadFile(cfg.PasswordFile)
	if err != nil {
		return "", "", fmt.Errorf("reading the password of Redis: %w", err)
	}
	return cfg.Username, strings.TrimRight(string(raw), "\r\n"), nil
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
