package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"modernc.org/sqlite/vtab"
)

// Module makes virtual tables in the connections of one pool.
type Module struct {
	Name string // as CREATE VIRTUAL TABLE says it
	vtab.Module
	// Tables are statements that make the tables in a new connection.
	Tables []string
}

// attach makes the tables in a connection.
func (m Module) attach(ctx context.Context, c driver.ExecerContext) error {
	for _, text := range m.Tables {
		if _, err := c.ExecContext(ctx, text, nil); err != nil {
			return fmt.Errorf("attach the feed: %w", err)
		}
	}
	return nil
}
