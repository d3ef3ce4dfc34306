package sqlite

import (
	linked "container/list"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	modernc "modernc.org/sqlite"
)

// cachedStatements is how many prepared statements a connection to SQLite keeps:
// more than there are on the way of a call, and about a megabyte.
const cachedStatements = 64

// connector makes connections to SQLite that keep prepared what they have run,
// as pgx does for PostgreSQL. The driver parses a text each time it is run,
// which costs more than running most of ours.
type connector struct {
	driver  *modernc.Driver
	dsn     string
	modules []Module
}

func newConnector(dsn string, modules []Module) (driver.Connector, error) {
	c := connector{new(modernc.Driver), dsn, modules}
	for _, m := range modules {
		if err := c.driver.RegisterModule(m.Name, m.Module); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.driver }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's connection is a %T", opened), opened.Close())
	}
	for _, m := range c.modules {
		if err := m.attach(ctx, inner); err != nil {
			return nil, errors.Join(err, opened.Close())
		}
	}
	return &cachingConn{sqliteConn: inner, free: make(map[string]*linked.Element, cachedStatements), byUse: linked.New()}, nil
}

// sqliteConn is what the driver's connections can do and database/sql uses.
type sqliteConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// cachingConn is used by one goroutine at a time, as every driver.Conn. A
// statement is in free, or somebody is running it: the same text twice at the
// same time gets two statements.
type cachingConn struct {
	sqliteConn
	free  map[string]*linked.Element // by text, of byUse
	byUse *linked.List               // of *cachedStmt, the latest in front
}

// cachedStmt is a statement that goes back to its connection when it is closed.
type cachedStmt struct {
	sqliteStmt
	text string
	conn *cachingConn
}

func (c *cachingConn) take(ctx context.Context, text string) (*cachedStmt, error) {
	if e, ok := c.free[text]; ok {
		delete(c.free, text)
		return c.byUse.Remove(e).(*cachedStmt), nil
	}
	s, err := c.sqliteConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	inner, ok := s.(sqliteStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's statement is a %T", s), s.Close())
	}
	return &cachedStmt{sqliteStmt: inner, text: text, conn: c}, nil
}

// Close implements driver.Stmt.
func (s *cachedStmt) Close() error {
	c := s.conn
	if _, twice := c.free[s.text]; twice {
		return s.sqliteStmt.Close()
	}
	c.free[s.text] = c.byUse.PushFront(s)
	if c.byUse.Len() <= cachedStatements {
		return nil
	}
	oldest := c.byUse.Remove(c.byUse.Back()).(*cachedStmt)
	delete(c.free, oldest.text)
	return oldest.sqliteStmt.Close()
}

// Close implements driver.Conn.
func (c *cachingConn) Close() error {
	var err error
	for e := c.byUse.Front(); e != nil; e = e.Next() {
		err = errors.Join(err, e.Value.(*cachedStmt).sqliteStmt.Close())
	}
	clear(c.free)
	c.byUse.Init()
	return errors.Join(err, c.sqliteConn.Close())
}

// Prepare implements driver.Conn.
func (c *cachingConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *cachingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ExecContext implements driver.ExecerContext. What failed is not kept.
func (c *cachingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	r, err := s.ExecContext(ctx, args)
	if err != nil {
		_ = s.sqliteStmt.Close()
		return nil, err
	}
	return r, s.Close()
}

// QueryContext implements driver.QueryerContext. What failed is not kept.
func (c *cachingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.sqliteStmt.Close()
		return nil, err
	}
	return &cachedRows{Rows: rows, stmt: s}, nil
}

// cachedRows give their statement back when they are closed.
type cachedRows struct {
	driver.Rows
	stmt *cachedStmt
}

// Close implements driver.Rows.
func (r *cachedRows) Close() error {
	if r.stmt == nil {
		return nil
	}
	s := r.stmt
	r.stmt = nil
	if err := r.Rows.Close(); err != nil {
		return errors.Join(err, s.sqliteStmt.Close())
	}
	return s.Close()
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *cachedRows) ColumnTypeDatabaseTypeName(i int) string {
	if named, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return named.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}
