package store

import (
	linked "container/list"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// keptStatements is how many prepared statements a connection to SQLite keeps:
// more than there are on the way of a call, and about a megabyte.
const keptStatements = 64

// keeper makes connections to SQLite that keep prepared what they have run,
// as pgx does for PostgreSQL. The driver parses a text each time it is run,
// which costs more than running most of ours.
type keeper struct {
	driver *sqlite.Driver
	dsn    string
	feed   *feed // nil where nothing is written
}

func newKeeper(dsn string, f *feed) (driver.Connector, error) {
	if f == nil {
		return keeper{driver: new(sqlite.Driver), dsn: dsn}, nil
	}
	d, err := f.driver()
	return keeper{d, dsn, f}, err
}

// Driver implements driver.Connector.
func (k keeper) Driver() driver.Driver { return k.driver }

// Connect implements driver.Connector.
func (k keeper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.driver.Open(k.dsn)
	if err != nil {
		return nil, err
	}
	inner, ok := c.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's connection is a %T", c), c.Close())
	}
	if k.feed != nil {
		if err := k.feed.attach(ctx, inner); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return &keptConn{sqliteConn: inner, free: make(map[string]*linked.Element, keptStatements), byUse: linked.New()}, nil
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

// keptConn is used by one goroutine at a time, as every driver.Conn. A
// statement is in free, or somebody is running it: the same text twice at the
// same time gets two statements.
type keptConn struct {
	sqliteConn
	free  map[string]*linked.Element // by text, of byUse
	byUse *linked.List               // of *keptStmt, the latest in front
}

// keptStmt is a statement that goes back to its connection when it is closed.
type keptStmt struct {
	sqliteStmt
	text string
	conn *keptConn
}

func (c *keptConn) take(ctx context.Context, text string) (*keptStmt, error) {
	if e, ok := c.free[text]; ok {
		delete(c.free, text)
		return c.byUse.Remove(e).(*keptStmt), nil
	}
	s, err := c.sqliteConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	inner, ok := s.(sqliteStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver's statement is a %T", s), s.Close())
	}
	return &keptStmt{sqliteStmt: inner, text: text, conn: c}, nil
}

// Close implements driver.Stmt.
func (s *keptStmt) Close() error {
	c := s.conn
	if _, twice := c.free[s.text]; twice {
		return s.sqliteStmt.Close()
	}
	c.free[s.text] = c.byUse.PushFront(s)
	if c.byUse.Len() <= keptStatements {
		return nil
	}
	oldest := c.byUse.Remove(c.byUse.Back()).(*keptStmt)
	delete(c.free, oldest.text)
	return oldest.sqliteStmt.Close()
}

// Close implements driver.Conn.
func (c *keptConn) Close() error {
	var err error
	for e := c.byUse.Front(); e != nil; e = e.Next() {
		err = errors.Join(err, e.Value.(*keptStmt).sqliteStmt.Close())
	}
	clear(c.free)
	c.byUse.Init()
	return errors.Join(err, c.sqliteConn.Close())
}

// Prepare implements driver.Conn.
func (c *keptConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *keptConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ExecContext implements driver.ExecerContext. What failed is not kept.
func (c *keptConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
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
func (c *keptConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.sqliteStmt.Close()
		return nil, err
	}
	return &keptRows{Rows: rows, stmt: s}, nil
}

// keptRows give their statement back when they are closed.
type keptRows struct {
	driver.Rows
	stmt *keptStmt
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
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
func (r *keptRows) ColumnTypeDatabaseTypeName(i int) string {
	if named, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return named.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}
