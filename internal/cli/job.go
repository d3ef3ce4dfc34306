package cli

import (
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/null"
	"modelgate/internal/store"
	"modelgate/internal/terminal"
)

// job groups the commands on asynchronous jobs.
func (a *app) job() *cobra.Command {
	return a.group("job", "Asynchronous jobs", a.jobList())
}

// jobRow is a job as the operator sees it.
type jobRow struct {
	ID           string                  `json:"id"` // of its usage row
	TaskID       modelgate.TaskID        `json:"task_id"`
	ClientID     modelgate.ClientID      `json:"client_id"`
	KeyID        modelgate.KeyID         `json:"api_key_id"`
	SubAccountID *modelgate.SubAccountID `json:"sub_account_id"`
	Provider     string                  `json:"provider"`
	Model        string                  `json:"model"`
	Kind         modelgate.ModelKind     `json:"kind"`
	Status       modelgate.JobStatus     `json:"status"`
	Reason       *modelgate.JobReason    `json:"expiration_reason"`
	Provisional  modelgate.Nano          `json:"provisional_cost_usd"`
	Final        modelgate.Nano          `json:"final_cost_usd"`
	CreatedAt    time.Time               `json:"created_at"`
	FinalizedAt  *time.Time              `json:"finalized_at"`
}

// listedJobs is how many jobs of each organization are listed unless the command
// says otherwise.
const listedJobs = 100

func (a *app) jobList() *cobra.Command {
	var client, status string
	limit := listedJobs
	cmd := a.list("list", "List jobs, the newest first", func(op *operation) error {
		clients, err := op.clients(client)
		if err != nil {
			return err
		}
		rows := []jobRow{}
		for _, c := range clients {
			jobs, _, err := op.db.Jobs(op.ctx, c.ID, store.JobList{Status: modelgate.JobStatus(status), Limit: max(limit, 0)})
			if err != nil {
				return err
			}
			for i := range jobs {
				j := &jobs[i]
				rows = append(rows, jobRow{
					j.ID.String(), j.TaskID, j.ClientID, j.KeyID, null.IfZero(j.SubAccountID), j.Provider, j.Model, j.Kind, j.Status,
					null.IfZero(j.Reason), j.Provisional, j.Final, j.CreatedAt, null.IfZero(j.FinalizedAt),
				})
			}
		}
		return op.out.table(rows, "TASK ID\tSTATUS\tCLIENT\tPROVIDER\tMODEL\tPROVISIONAL USD\tFINAL USD\tCREATED", func(row func(...any)) {
			for _, j := range rows {
				row(j.TaskID, terminal.State(j.Status), j.ClientID, j.Provider, j.Model, j.Provisional, j.Final, stamp(j.CreatedAt))
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	choiceFlag(cmd, &status, "status", "jobs in this state only", "pending", "succeeded", "failed", "cancelled", "expired")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many of each organization; 0 is all")
	return cmd
}
