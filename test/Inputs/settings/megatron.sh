#!/bin/bash
# A Llama in the form of Megatron-LM's example scripts.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
NUM_NODES=${SLURM_NNODES:-"2"}
MASTER_ADDR=${MASTER_ADDR:-localhost}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))

CHECKPOINT_PATH=$1 #<Specify path>
DATA_PATH=$2
TP=2
SEQ_LENGTH=64

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NUM_NODES \
    --master_addr $MASTER_ADDR
"

MODEL_ARGS=(
    --use-mcore-models
    --num-layers 4
    --hidden-size 64
    --ffn-hidden-size 176
    --num-attention-heads 8
    --group-query-attention
    --num-query-groups 4
    --seq-length $SEQ_LENGTH
    --max-position-embeddings $((2 * SEQ_LENGTH))
    --position-embedding-type rope
    --rotary-base 500000
    --normalization RMSNorm
    --norm-epsilon 1e-6
    --attention-dropout 0.0 --hidden-dropout 0.0
    --swiglu
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --vocab-size 256
    --init-method-std 0.02
)

TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 32
    # --rampup-batch-size 16 16 5859375
    --train-samples 16000
    --lr-decay-samples 16000
    --lr-warmup-samples 640
    --lr 6.0e-4
    --min-lr 6.0e-5
    --lr-decay-style WSD
    --lr-wsd-decay-style minus_sqrt
    --lr-wsd-decay-samples 3200
    --weight-decay 0.1
    --adam-beta2 0.95
    --clip-grad 1.0
    --bf16
    --grad-reduce-in-bf16
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 2
)

# 8-bit types are not Meshwright's.
FP8_ARGS=()
if [[ "$USE_FP8" == "1" ]]; then
    FP8_ARGS+=(
        "--fp8-format hybrid"
        "--fp8-amax-history-len 1024"
    )
fi

MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size 2
    --num-virtual-stages-per-pipeline-rank 2
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce --overlap-param-gather
    --tp-comm-overlap
)

LOGGING_ARGS=(
    --log-interval 10 --save-interval 1000 --eval-interval 100 --eval-iters 10
    --save "$CHECKPOINT_PATH" --load "$CHECKPOINT_PATH"
    --surprising-argument
)

torchrun ${DISTRIBUTED_ARGS} pretrain_gpt.py \
    ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} ${FP8_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]} --data-path $DATA_PATH ${LOGGING_ARGS[@]}
