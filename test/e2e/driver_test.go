//go:build e2e

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
)

// dialFunc connects to an address of the cluster's network.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// forwardedConn is a connection through a tunnel of its own.
type forwardedConn struct {
	net.Conn
	end func()
}

// Close ends the tunnel too.
func (c forwardedConn) Close() error {
	err := c.Conn.Close()
	c.end()
	return err
}

// forward connects to a Service, as NAME.NAMESPACE.svc:PORT, from outside of the
// cluster's network: through the API server, to a pod that is behind the Service.
func forward(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	name, rest, _ := strings.Cut(host, ".")
	namespace, isService := strings.CutSuffix(rest, ".svc")
	if !isService {
		return nil, fmt.Errorf("%s isn't the name of a Service", host)
	}
	pod, err := podBehind(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return forwardToPod(ctx, namespace, pod, port)
}

// podBehind returns a pod that a Service sends its clients to.
func podBehind(ctx context.Context, namespace, service string) (string, error) {
	slices, err := env.kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return "", err
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready && endpoint.TargetRef != nil {
				return endpoint.TargetRef.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no pod is behind the Service %s", service)
}

func forwardToPod(ctx context.Context, namespace, pod, port string) (net.Conn, error) {
	target := env.kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(target, env.config)
	if err != nil {
		return nil, err
	}
	tunnel, end := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan error, 1)
	var output bytes.Buffer
	forwarder, err := portforward.NewOnAddressesWithContext(tunnel, dialer, []string{"127.0.0.1"}, []string{"0:" + port}, ready, &output, &output)
	if err != nil {
		end()
		return nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		end()
		return nil, fmt.Errorf("forward to pod %s: %w", pod, errors.Join(err, errors.New(output.String())))
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		end()
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	if err != nil {
		end()
		return nil, err
	}
	return forwardedConn{conn, end}, nil
}

// expectDriver reads a value by the Go driver; by the credentials' uri alone, if
// asked for.
func (e engine) expectDriver(t *testing.T, credentials map[string]string, byURI bool, value string) {
	t.Helper()
	connect := e.dial
	if byURI {
		connect = e.dialURI
	}
	eventually(t, patience, "an answer to the Go driver", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		open, err := connect(credentials, forward)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, open.close()) }()
		got, err := open.ask(ctx, e.readQuery(key)...)
		if err == nil && got != value {
			err = fmt.Errorf("%s is %q, want %q", key, got, value)
		}
		return err
	})
}

// redisSession is a session of Redis or Valkey.
type redisSession struct{ *redis.Client }

func (s redisSession) ask(ctx context.Context, query ...string) (string, error) {
	words := make([]any, 0, len(query))
	for _, word := range query {
		words = append(words, word)
	}
	answer, err := s.Do(ctx, words...).Text()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return answer, err
}

func (s redisSession) close() error { return s.Close() }

func dialRedis(credentials map[string]string, dial dialFunc) (session, error) {
	return redisSession{redis.NewClient(&redis.Options{
		Addr:     net.JoinHostPort(credentials["host"], credentials["port"]),
		Username: credentials["username"], Password: credentials["password"], Dialer: dial,
	})}, nil
}

func dialRedisURI(credentials map[string]string, dial dialFunc) (session, error) {
	options, err := redis.ParseURL(credentials["uri"])
	if err != nil {
		return nil, err
	}
	options.Dialer = dial
	return redisSession{redis.NewClient(options)}, nil
}

// mysqlSession is a session of MySQL or MariaDB.
type mysqlSession struct{ *sql.DB }

// ask sends the statements one by one, and returns the one value that the last
// of them answers with.
func (s mysqlSession) ask(ctx context.Context, query ...string) (string, error) {
	before, last := statements(query[0])
	for _, statement := range before {
		if _, err := s.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	var value string
	err := s.QueryRowContext(ctx, last).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

func (s mysqlSession) close() error { return s.Close() }

func dialMySQL(credentials map[string]string, dial dialFunc) (session, error) {
	config := mysql.NewConfig()
	config.Net, config.DialFunc = "tcp", dial
	config.Addr = net.JoinHostPort(credentials["host"], credentials["port"])
	config.User, config.Passwd, config.DBName = credentials["username"], credentials["password"], credentials["database"]
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return mysqlSession{sql.OpenDB(connector)}, nil
}

// dialMySQLURI takes the uri apart, since this driver has a form of its own.
func dialMySQLURI(credentials map[string]string, dial dialFunc) (session, error) {
	parsed, err := url.Parse(credentials["uri"])
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != "mysql" {
		return nil, fmt.Errorf("the scheme of the uri is %q", parsed.Scheme)
	}
	password, _ := parsed.User.Password()
	return dialMySQL(map[string]string{
		"host": parsed.Hostname(), "port": parsed.Port(), "username": parsed.User.Username(),
		"password": password, "database": strings.TrimPrefix(parsed.Path, "/"),
	}, dial)
}

func dialPostgreSQL(credentials map[string]string, dial dialFunc) (session, error) {
	config, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	port, err := net.LookupPort("tcp", credentials["port"])
	if err != nil {
		return nil, err
	}
	config.Host, config.Port = credentials["host"], uint16(port)
	config.User, config.Password, config.Database = credentials["username"], credentials["password"], credentials["database"]
	return &postgresqlSession{config: forwarded(config, dial)}, nil
}

func dialPostgreSQLURI(credentials map[string]string, dial dialFunc) (session, error) {
	config, err := pgx.ParseConfig(credentials["uri"])
	if err != nil {
		return nil, err
	}
	return &postgresqlSession{config: forwarded(config, dial)}, nil
}

func forwarded(config *pgx.ConnConfig, dial dialFunc) *pgx.ConnConfig {
	config.DialFunc = pgconn.DialFunc(dial)
	// The name means something inside of the cluster only.
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	return config
}

// postgresqlSession is a session of PostgreSQL, which the first query begins.
type postgresqlSession struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

// ask sends the statements one by one, and returns the one value that the last
// of them answers with.
func (s *postgresqlSession) ask(ctx context.Context, query ...string) (string, error) {
	var err error
	if s.conn == nil {
		if s.conn, err = pgx.ConnectConfig(ctx, s.config); err != nil {
			return "", err
		}
	}
	before, last := statements(query[0])
	for _, statement := range before {
		if _, err := s.conn.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	var value string
	err = s.conn.QueryRow(ctx, last).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return value, err
}

func (s *postgresqlSession) close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close(context.Background())
}
